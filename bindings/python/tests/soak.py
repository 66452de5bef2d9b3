"""A call in real time, and how late its frames are: python tests/soak.py --minutes 60 --rooms 2 --frame 10

A thread a room receives a frame of the demo when it is due, as from a network, and passes it through the filter. A frame is
late by the time from when it was due to when its result is there. A control thread, which computes nothing, is as late as
the machine's scheduler makes anything. The last line is JSON; the exit code is 1 if a frame was later than the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
from conftest import AUDIO, read

import alphamf

#: Maximum lateness of a frame, s.
LIMIT = 0.005


def audio(rate: int) -> Any:
    """The demo at a multiple of its rate."""
    samples, from_rate = read(AUDIO / "demo-noisy.wav")
    return np.repeat(samples, rate // from_rate)


def frames_of(rate: int, milliseconds: int) -> List[bytes]:
    """The demo in frames."""
    length = rate * milliseconds // 1000
    samples = audio(rate)
    return [samples[at : at + length].tobytes() for at in range(0, len(samples) - length, length)]


def room_of(kind: str, denoiser: alphamf.Denoiser, rate: int) -> Callable[[bytes], object]:
    """A function that takes a frame through a filter."""
    if kind == "livekit":
        from livekit import rtc

        from alphamf.livekit import NoiseFilter

        processor = NoiseFilter(denoiser, sample_rate=rate)
        return lambda frame: processor._process(rtc.AudioFrame(frame, rate, 1, len(frame) // 2))
    if kind == "pipecat":
        from alphamf.pipecat import NoiseFilter as AudioFilter

        loop = asyncio.new_event_loop()
        audio_filter = AudioFilter(denoiser)
        loop.run_until_complete(audio_filter.start(rate))
        return lambda frame: loop.run_until_complete(audio_filter.filter(frame))
    live = denoiser.live(rate)
    return lambda frame: live.process(np.frombuffer(frame, np.int16))


def attend(work: Callable[[bytes], object], frames: List[bytes], start: float, period: float, count: int, late: Any) -> None:
    """Passes ``count`` frames, one every ``period``, and notes when each was done after it was due."""
    for number in range(count):
        due = start + number * period
        # A frame that is due waits for nobody: a delay is carried over to the next.
        time.sleep(max(0.0, due - time.monotonic()))
        work(frames[number % len(frames)])
        late[number] = time.monotonic() - due


def soak(kind: str, rooms: int, rate: int, frame_ms: int, seconds: float) -> Tuple[Dict[str, Any], Any, Any]:
    """Figures of a soak; how late each frame of each room was, and each of the control, s."""
    frames = frames_of(rate, frame_ms)
    period = frame_ms / 1000
    count = int(seconds / period)
    denoiser = alphamf.Denoiser()
    works = [room_of(kind, denoiser, rate) for _ in range(rooms)]
    for work in works:
        # Caches and threads are warm before the call.
        for frame in frames[:50]:
            work(frame)
    late = np.zeros((rooms + 1, count), np.float32)
    start = time.monotonic() + 0.5
    # Rooms start one after the other, as calls do.
    starts = [start + period * room / rooms for room in range(rooms)] + [start]
    jobs = [
        threading.Thread(target=attend, args=(work, frames, at, period, count, row))
        for work, at, row in zip([*works, lambda frame: None], starts, late)
    ]
    used = time.process_time()
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    used = time.process_time() - used
    rows, control = late[:-1], late[-1]
    figures = {
        "filter": kind,
        "rooms": rooms,
        "rate": rate,
        "frame_ms": frame_ms,
        "minutes": round(count * period / 60, 2),
        "frames": int(rows.size),
        "late_over_5_ms": int((rows > LIMIT).sum()),
        "median_ms": round(1000 * float(np.median(rows)), 3),
        "p99.9_ms": round(1000 * float(np.quantile(rows, 0.999)), 3),
        "worst_ms": round(1000 * float(rows.max()), 3),
        "control_late_over_5_ms": int((control > LIMIT).sum()),
        "control_p99.9_ms": round(1000 * float(np.quantile(control, 0.999)), 3),
        "control_worst_ms": round(1000 * float(control.max()), 3),
        "cores_used": round(used / (count * period), 3),
        "nice": os.nice(0),
        "load": os.getloadavg(),
    }
    return figures, rows, control


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures how late the frames of calls are.")
    parser.add_argument("--filter", default="livekit", choices=["livekit", "pipecat", "live"])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rooms", type=int, default=1)
    parser.add_argument("--rate", type=int, default=48000, choices=[16000, 32000, 48000])
    parser.add_argument("--frame", type=int, default=10, choices=[10, 20], help="milliseconds")
    parser.add_argument("--realtime", action="store_true", help="under SCHED_RR, as audio servers run")
    options = parser.parse_args()
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))
    figures, _, _ = soak(options.filter, options.rooms, options.rate, options.frame, 60 * options.minutes)
    print(json.dumps({**figures, "realtime": options.realtime}))
    return int(figures["late_over_5_ms"] > 0)


if __name__ == "__main__":
    sys.exit(main())
