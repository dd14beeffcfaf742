"""Ending a call of the library from Python: by an exception in a callback, and by Ctrl-C."""

from __future__ import annotations

import ctypes
import signal
import threading
from types import TracebackType
from typing import Any


class Stop:
    """The flag that a call looks at, and what is raised once the call has ended.

    Python runs its handler of Ctrl-C only between lines of Python, so in a callback, where an exception cannot leave
    through C. Therefore the handler is another one during the call, which sets the flag.
    """

    def __init__(self) -> None:
        self.flag = ctypes.c_int(0)
        self.exception: BaseException | None = None
        self._before: Any = None
        self._pressed = False

    def fail(self, exception: BaseException) -> None:
        """Ends the call; the first such exception is raised afterwards."""
        self.flag.value = 1
        self.exception = self.exception or exception

    def _press(self, *_: Any) -> None:
        self.flag.value = 1
        self._pressed = True

    def __enter__(self) -> Stop:
        # Only the main thread may change handlers, and only one of Python's can be put back.
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self.exception is not None:
            raise self.exception from None
        if self._pressed:
            self._before(signal.SIGINT, None)
