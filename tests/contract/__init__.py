"""What every engine has to do, by public names only: the engine x kind x number type x host or device x waiting x batch.

An engine's column of the table in cases.py says what it has; what it has not is asked for all the same, and has to raise
what the table says. Device engines run in the emulator, and on a GPU with ``-m gpu``. All number types but double
precision are marked `thorough`.
"""
