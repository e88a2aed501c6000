"""What every engine has to do, by public names only.

Tests run for each engine, kind of factorization and number type, with values on the host and on the device, with calls
that wait and calls that do not. The table in cases.py says what an engine has; for the rest it has to raise an error.
Device engines run in the emulator, and on a GPU with ``-m gpu``. Number types other than double precision are marked
`thorough`.
"""
