# SPDX-License-Identifier: BSD-3-Clause
"""A process that sends Ctrl-C to another one: ``python -m benchmarks.interrupts_process PID``.

Each line that it reads is a number of seconds. It waits for so long, notes the clock and the processor time
of the other process, sends the signal, and answers with both as JSON, and with the clock afterwards: a
process that others make wait in between cannot tell when the signal came.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time


def processor_clock(pid: int) -> int:
    """The clock of the processor time of a process, as Linux numbers it."""
    return (~pid << 3) | 2


def main() -> None:
    """Send a signal for every line."""
    pid = int(sys.argv[1])
    for line in sys.stdin:
        time.sleep(float(line))
        if os.getppid() != pid:  # it is gone, and its number may be another's
            return
        moment = time.monotonic(), time.clock_gettime(processor_clock(pid))
        os.kill(pid, signal.SIGINT)
        print(json.dumps((*moment, time.monotonic())), flush=True)


if __name__ == "__main__":
    main()
