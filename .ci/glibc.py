"""What of the C library a wheel needs beyond manylinux_2_28: the names of the symbols, by version.

    python .ci/glibc.py WHEEL

A wheel from the container of manylinux_2_28 needs nothing. One from a later system needs what that system's library has
under newer versions; the functions of libpthread are among them, which went into libc in 2.34. Those would be found in
the container as well. The exit status is 1 if there are others.
"""

import io
import sys
import zipfile

from elftools.elf.elffile import ELFFile

GLIBC = (2, 28)
#: Functions that glibc 2.28 has in libc, libm, libpthread or libdl, and later ones under a newer version; and what
#: libstdc++ asks for only where the headers of the C library have it.
OLDER = """
    dladdr dlclose dlerror dlopen dlsym exp exp2f expf fcntl64 fmod fmodf hypot hypotf log log2 log2f logf pow powf
    pthread_attr_getstack pthread_cond_clockwait pthread_cond_timedwait pthread_create pthread_detach pthread_getattr_np
    pthread_join pthread_key_create pthread_getspecific pthread_mutex_trylock pthread_once pthread_rwlock_rdlock
    pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock pthread_rwlock_wrlock pthread_setspecific
    stat fstat lstat sem_init sem_post sem_wait __pthread_key_create __libc_single_threaded
"""


def needed(library):
    """Symbol and version of everything undefined in a shared library."""
    elf = ELFFile(io.BytesIO(library))
    symbols, versions = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
    names = {}
    for _, entries in elf.get_section_by_name(".gnu.version_r").iter_versions():
        names.update((entry["vna_other"], entry.name) for entry in entries)
    for k, symbol in enumerate(symbols.iter_symbols()):
        version = versions.get_symbol(k)["ndx"]
        if symbol["st_shndx"] == "SHN_UNDEF" and version in names:
            yield symbol.name, names[version]


def main(wheel):
    new = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(".so"):
                continue
            for symbol, version in sorted(needed(archive.read(name))):
                family, _, number = version.rpartition("_")
                parts = tuple(int(part) for part in number.split(".") if part.isdigit())
                if family == "GLIBC" and parts > GLIBC:
                    known = symbol in OLDER.split()
                    print(f"{name}: {symbol}@{version}" + ("" if known else " is newer than glibc 2.28"))
                    new += [] if known else [symbol]
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
