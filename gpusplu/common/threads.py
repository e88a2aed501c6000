"""Registration of the core's threads with threadpoolctl, which can limit them like those of BLAS and OpenMP."""

from __future__ import annotations

from os.path import basename


def register_with_threadpoolctl() -> None:
    """Register the core with threadpoolctl, if that is installed."""
    try:
        import threadpoolctl
    except ImportError:
        return
    from .. import _core  # must be loaded: threadpoolctl searches loaded libraries

    class GpuspluController(threadpoolctl.LibController):  # type: ignore[misc]
        user_api = "gpusplu"
        internal_api = "gpusplu"
        filename_prefixes = (basename(_core.__file__),)
        check_symbols = ("gpusplu_get_num_threads", "gpusplu_set_num_threads")

        def get_num_threads(self) -> int:
            return int(self.dynlib.gpusplu_get_num_threads())

        def set_num_threads(self, num_threads: int) -> None:
            self.dynlib.gpusplu_set_num_threads(num_threads)

        def get_version(self) -> None:
            return None

    threadpoolctl.register(GpuspluController)
