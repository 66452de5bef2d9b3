"""The values recorded in tests.rs, from public packages.

    pip install numpy fast_bss_eval mir_eval pystoi
    python reference.py [DATA]

Without DATA, scores the generated signals; with it, real files below that folder.
"""
import os, sys, warnings
import numpy as np, fast_bss_eval, mir_eval
from pystoi import stoi

warnings.simplefilter('ignore')

def noise(length, seed):
    out, state = np.empty(length), seed
    for n in range(length):
        state = (1664525 * state + 1013904223) % 2**32
        out[n] = state / 2**31 - 1
    return out

def reference(fs):
    t = np.arange(3 * fs) / fs
    x = sum(np.sin(k * (2 * np.pi * 130 * t + 3 * np.sin(2 * np.pi * 0.9 * t))) / k
            for k in range(1, 26))
    return 0.2 * np.sin(2 * np.pi * 0.7 * t).clip(0) ** 2 * x

def estimates(r):
    late = np.concatenate((np.zeros(5), r[:-5]))
    return dict(noisy=r + 0.1 * noise(len(r), 1), filtered=0.5 * r - 0.3 * late + 0.01 * noise(len(r), 2),
                bent=np.abs(r) * r / 0.2, unrelated=0.1 * noise(len(r), 3))

def seg_snr(ref, est, fs, seg=0.03, lo=-10.0, hi=35.0):
    n = int(seg * fs); k = len(ref) // n
    r, e = ref[: k * n].reshape(k, n), est[: k * n].reshape(k, n)
    s = 10 * np.log10((r**2).sum(1) / ((r - e) ** 2).sum(1).clip(1e-20) + 1e-20)
    keep = (r**2).sum(1) > 1e-6 * (r**2).sum(1).max()
    return float(np.clip(s[keep], lo, hi).mean())

def distance(r, e, fs, low, high):
    n = 2 * round(1024 * fs / 48000)
    power = lambda x: np.abs(np.fft.rfft(
        np.lib.stride_tricks.sliding_window_view(x, n)[:: n // 4] * np.hanning(n + 1)[:-1])) ** 2
    p, q = power(r), power(e)
    f, floor = np.fft.rfftfreq(n, 1 / fs), 1e-8 * p.max()
    d = (10 * np.log10(np.maximum(p, floor) / np.maximum(q, floor))) ** 2
    return np.sqrt(d[:, (f >= low) & (f <= high)].mean(1)).mean()

def row(r, e, fs):
    sdr = fast_bss_eval.sdr(r[None], e[None])[0]
    old = mir_eval.separation.bss_eval_sources(r[None], e[None])[0][0]
    assert abs(sdr - old) < 2e-3, (sdr, old)
    snr = 10 * np.log10((r @ r) / ((r - e) @ (r - e)))
    return (sdr, fast_bss_eval.sdr(r[None], e[None], filter_length=1)[0], snr, seg_snr(r, e, fs),
            stoi(r, e, fs), stoi(r, e, fs, extended=True))

def show(name, values):
    print(f'{name} [' + ', '.join(f'{v:.5f}' for v in values) + ']')

if len(sys.argv) == 1:
    for fs in (8000, 10000, 16000, 44100):
        r = reference(fs)
        for name, e in estimates(r).items():
            show(f'({fs}, "{name}",', row(r, e, fs))
    for fs in (44100, 48000):
        r = reference(fs)
        for name in ('noisy', 'filtered'):
            e = estimates(r)[name]
            show(f'({fs}, "{name}",', (distance(r, e, fs, 100, 8000), distance(r, e, fs, 8000, 20000)))
else:
    import soundfile as sf
    for clean, noisy in (('noizeus/clean/sp21.wav', 'noizeus/noisy/babble_5dB/sp21_babble_sn5.wav'),
                         ('noizeus/clean/sp30.wav', 'noizeus/noisy/car_0dB/sp30_car_sn0.wav'),
                         ('noizeus/clean/sp11.wav', 'noizeus/noisy/train_15dB/sp11_train_sn15.wav'),
                         ('voicebank_p232/clean/p232_001.wav', 'voicebank_p232/noisy/p232_001.wav'),
                         ('voicebank_p232/clean/p232_414.wav', 'voicebank_p232/noisy/p232_414.wav')):
        (r, fs), (e, _) = (sf.read(os.path.join(sys.argv[1], f)) for f in (clean, noisy))
        n = min(len(r), len(e))
        show(f'("{clean}", "{noisy}",', row(r[:n], e[:n], fs))
