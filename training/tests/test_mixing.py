"""Mixtures: what goes in, lengths, levels, signal-to-noise ratios; the same seed gives the same."""

import glob
import os

import numpy as np
import pytest
import torch

import recordings
from mixing import RUMBLE_HERTZ, Mixer, active_power, holes, mu_law
from prepare import PART_BYTES
from recordings import Plan, Recordings, index_of, render

RATE = 16000


def test_voices_kept_apart_are_not_prepared_and_made_ones_are(prepared):
    labels = {row[0] for row in index_of(prepared)["speech"]}
    assert "7" not in labels
    assert {"8", "voice0", "actor"} <= labels
    assert any(label.startswith("made-") for label in labels)
    assert not any(label.endswith("-7") for label in labels)


def test_a_folder_without_recordings_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="index.json"):
        Recordings(tmp_path, "noise", "cpu")
    (tmp_path / "index.json").write_text('{"noise": []}')
    with pytest.raises(SystemExit, match="no recordings of the kind noise"):
        Recordings(tmp_path, "noise", "cpu")


def test_parts_are_small_and_hold_all_clips(prepared):
    for kind in ("speech", "noise", "room"):
        paths = sorted(glob.glob(os.path.join(prepared, kind + "-*.npy")))
        assert paths and all(os.path.getsize(path) <= PART_BYTES + 128 for path in paths)
        parts = [np.load(path) for path in paths]
        for _, part, at, n in index_of(prepared)[kind]:
            assert at + n <= len(parts[part])
        assert sum(len(part) for part in parts) == sum(row[3] for row in index_of(prepared)[kind])


def test_a_track_at_its_own_speed_is_the_recording(prepared):
    speech = Recordings(prepared, "speech", "cpu")
    at, n = int(speech.at[1]), int(speech.length[1])
    plan = Plan(np.array([[at]]), np.array([[n]]), np.array([[100.0]]), np.array([[0.5]]), np.array([1.0]))
    x = render(speech, plan, n + 300, 1)[0]
    assert torch.equal(x[:100], torch.zeros(100))
    expected = speech.data[at + 1 : at + n - 1].float() / 64000
    assert torch.allclose(x[101 : 100 + n - 1], expected, atol=1e-6)
    assert x[100 + n + 1 :].abs().max() == 0


def test_a_track_at_twice_the_speed_has_twice_the_frequency():
    class Tone:
        data = (20000 * torch.sin(2 * torch.pi * 500 * torch.arange(RATE) / RATE)).to(torch.int16)

    plan = Plan(np.array([[0]]), np.array([[RATE]]), np.array([[0.0]]), np.array([[1.0]]), np.array([2.0]))
    x = render(Tone, plan, RATE // 2, 1)[0]
    assert int(torch.fft.rfft(x).abs().argmax()) * 2 == 1000


def test_faster_and_slower_tracks_keep_high_tones_without_images():
    for hertz, ratio, bound in ((3000, 1.08, 1e-5), (6000, 1.08, 1e-3), (6000, 0.92, 1e-3), (7000, 1.5, None)):

        class Tone:
            data = (20000 * torch.sin(2 * torch.pi * hertz * torch.arange(2 * RATE) / RATE)).to(torch.int16)

        plan = Plan(np.array([[0]]), np.array([[2 * RATE]]), np.array([[0.0]]), np.array([[1.0]]), np.array([ratio]))
        x = render(Tone, plan, RATE, 1)[0][100:-100]
        power = torch.fft.rfft(x * torch.hann_window(len(x))).abs().square()
        if bound is None:
            # Above half the sample rate it would come back as another tone.
            assert x.square().mean() < 0.01 * 0.5 * (20000 / 32000) ** 2
            continue
        assert abs(10 * torch.log10(x.square().mean() / (0.5 * (20000 / 32000) ** 2))) < 0.3, (hertz, ratio)
        at = round(hertz * ratio * len(x) / RATE)
        assert 1 - power[at - 10 : at + 11].sum() / power.sum() < bound, (hertz, ratio)


def test_clips_of_a_voice_come_again_once_all_have_come(prepared):
    speech = Recordings(prepared, "speech", "cpu")
    labels = np.repeat(np.arange(len(speech.labels))[:, None], 12, 1)
    at, _ = speech.clips(np.random.default_rng(1), labels, 1 << 30)
    for label, starts in enumerate(at):
        count = int(speech.count[label])
        assert len(set(starts[:count])) == min(count, 12), speech.labels[label]


def test_voices_of_few_seconds_and_made_ones_are_drawn_less(prepared):
    speech = Recordings(prepared, "speech", "cpu")
    share = dict(zip(speech.labels, np.diff(speech.cumulative, prepend=0)))
    assert sum(of for label, of in share.items() if label.startswith("made-")) < 0.25
    assert recordings.preference("made-shouted-so762-0001") == recordings.MADE * recordings.PREFERENCE["so762"]
    assert recordings.preference("wind-storm") == recordings.PREFERENCE["wind"] and recordings.preference("8") == 1


def test_some_voices_begin_late_end_early_or_are_not_there(prepared):
    mixer = Mixer(prepared, 2, 2.0)
    ones = mixer.silenced(torch.ones(4000, 2 * RATE))
    there = ones.mean(1)
    assert 0.02 < (there == 0).float().mean() < 0.04
    assert 0.05 < ((there > 0) & (there < 0.85)).float().mean() < 0.09
    late = ones[:, 100] == 0
    assert late.any() and (ones[late & (there > 0)][:, -40:].mean(1) > 0.5).all()


def test_made_rooms_decay_as_asked(prepared):
    mixer = Mixer(prepared, 4, 2.0)
    seconds = 0.5
    decay = [torch.full((8, 1), np.log(1e3) / (RATE * seconds), dtype=torch.float32)] * 2
    r = mixer.made_rooms(decay)
    level = lambda first: 10 * torch.log10(r[:, int(first * RATE) : int((first + 0.05) * RATE)].square().mean())
    assert abs(float(level(0.1) - level(0.2)) - 60 * 0.1 / seconds) < 1.5
    assert (r.abs().argmax(1)[r[:, 0] > 1] == 0).all()


def test_mixtures_have_the_length_level_and_ratio_asked_for(prepared):
    mixer = Mixer(prepared, 3, 2.0)
    wanted, others = np.linspace(-5, 25, 24), []

    def snr(n, other):
        others.append(torch.as_tensor(other))
        return wanted

    mixer.snr = snr
    y, x, who, z = mixer.scene(24)
    assert y.shape == x.shape == z.shape == (24, 2 * RATE) and len(who) == 24
    assert torch.allclose(y.square().mean(1), torch.ones(24), atol=1e-3)
    assert torch.allclose(y, x + z, atol=1e-4)
    spoken = x.square().mean(1) > 0
    power = mixer.through(z, (mixer.hertz >= RUMBLE_HERTZ).to(torch.complex64)).square().mean(1)
    noise = torch.where(others[0], active_power(z, RATE), power)
    ratio = 10 * torch.log10(active_power(x, RATE) / noise)
    assert spoken.sum() > 20
    assert np.abs(ratio.numpy() - wanted)[spoken.numpy()].max() < 0.01


def test_drawn_ratios_reach_from_minus_ten_to_thirty(prepared):
    snr = Mixer(prepared, 0, 1.0).snr(4000, np.zeros(4000, bool))
    assert -10 <= snr.min() < -9 and 50 < snr.max() <= 60
    assert 0.08 < np.mean(snr > 20) < 0.3 and 0.04 < np.mean(snr < -4) < 0.2


def test_the_same_seed_gives_the_same_mixtures(prepared):
    first, second, other = (Mixer(prepared, seed, 1.0).batch(8) for seed in (5, 5, 6))
    assert torch.equal(first.noisy, second.noisy) and torch.equal(first.voice, second.voice)
    assert not torch.equal(first.noisy, other.noisy)
    assert all(torch.isfinite(b.noisy).all() and torch.isfinite(b.voice).all() for b in (first, other))


def test_recordings_at_eight_kilohertz_have_nothing_above(prepared):
    mixer = Mixer(prepared, 1, 1.0)
    for _ in range(4):
        batch = mixer.batch(16)
        rows = batch.voice[batch.half]
        spectrum = torch.fft.rfft(torch.nn.functional.pad(rows, (0, len(rows[0])))).abs().square() if len(rows) else None
        if spectrum is not None:
            above = spectrum[:, spectrum.shape[1] * 17 // 32 :].sum(1)
            assert (above <= 1e-3 * spectrum.sum(1) + 1e-6).all()


def test_damages_leave_what_is_loud():
    x = torch.sin(2 * torch.pi * 440 * torch.arange(RATE) / RATE)[None] + 1e-4 * torch.randn(1, RATE)
    for y in (mu_law(x), holes(x, torch.tensor([25.0]))):
        error = (y - x)[:, 600:-600].square().mean()
        assert 0 < error < 1e-3 * x.square().mean()
