//! Packet times: gaps between packets, and the end of the last packet.

use symphonia::core::packet::Packet;
use symphonia::core::units::TimeBase;

/// Shortest gap between packets that counts as a loss, s; containers round times to a millisecond.
const MIN_GAP_SECONDS: f64 = 0.005;

/// Longest gap that counts as a loss, s; a longer one is an error of the time stamps.
const MAX_GAP_SECONDS: f64 = 600.0;

/// Shortest gap, in packets, if the container has no packet durations: some recorders use arrival times as time stamps.
const MIN_GAP_PACKETS: f64 = 0.75;

/// Clock that predicts the time of the next packet.
#[derive(Debug, Default)]
pub(super) struct PacketClock {
    /// Unit of times.
    base: Option<TimeBase>,
    /// Time of the last packet, in units.
    last: Option<i64>,
    /// Expected time of the next packet, in units.
    due: Option<i64>,
    /// Duration of the last packet from its decoded samples, s, if the container has no duration.
    measured: Option<f64>,
    /// Whether the last packet could not be decoded: it is already counted as damaged, and its samples may be missing.
    is_counted: bool,
}

/// A gap before a packet, where samples are missing.
pub(super) struct Gap {
    pub(super) seconds: f64,
    /// Whether a packet that is already counted as damaged causes the gap.
    pub(super) is_counted: bool,
}

impl PacketClock {
    pub(super) fn new(time_base: Option<TimeBase>) -> Self {
        Self { base: time_base, ..Self::default() }
    }

    /// Unit of times, s.
    fn unit(&self) -> Option<f64> {
        self.base.map(|base| f64::from(base.numer.get()) / f64::from(base.denom.get()))
    }

    /// Converts a duration in units to samples at a sample rate in Hz; returns them and their maximum rounding error in
    /// samples.
    pub(super) fn samples(&self, duration: u64, sample_rate: u32) -> (u64, u64) {
        let Some(base) = self.base else { return (duration, 0) };
        let (numerator, denominator) =
            (u128::from(base.numer.get()) * u128::from(sample_rate), u128::from(base.denom.get()));
        let samples = (u128::from(duration) * numerator + denominator / 2) / denominator;
        let error = if numerator == denominator { 0 } else { numerator.div_ceil(denominator) };
        (u64::try_from(samples).unwrap_or(u64::MAX), u64::try_from(error).unwrap_or(u64::MAX))
    }

    /// Returns the gap before a packet, if there is one.
    pub(super) fn gap_before(&self, packet: &Packet) -> Option<Gap> {
        let seconds = self.unit()? * packet.pts.get().saturating_sub(self.due?) as f64;
        let shortest = MIN_GAP_PACKETS * self.measured.unwrap_or(0.0);
        let is_gap = (MIN_GAP_SECONDS.max(shortest)..MAX_GAP_SECONDS).contains(&seconds);
        is_gap.then_some(Gap { seconds, is_counted: self.is_counted })
    }

    /// Advances past a packet. `decoded_seconds` is its decoded duration, or `None` if it could not be decoded.
    pub(super) fn pass(&mut self, packet: &Packet, decoded_seconds: Option<f64>) {
        // Without durations, all packets of a block have its time stamp.
        let is_same = self.last.replace(packet.pts.get()) == Some(packet.pts.get());
        let start = self.due.filter(|_| is_same).unwrap_or(packet.pts.get());
        self.is_counted = false;
        let declared = i64::try_from(packet.block_dur().get()).unwrap_or(0);
        if declared > 0 {
            (self.due, self.measured) = (Some(start.saturating_add(declared)), None);
            return;
        }
        match decoded_seconds {
            Some(seconds) if seconds > 0.0 => {
                let units = self.unit().map_or(0.0, |unit| (seconds / unit).round());
                (self.due, self.measured) = (Some(start.saturating_add(units as i64)), Some(seconds));
            }
            // For example the first packet of Vorbis: the time of the next packet is unknown.
            Some(_) => (self.due, self.measured) = (None, None),
            // The time stamp of the next packet shows the length of this one.
            None => (self.due, self.is_counted) = (Some(start), true),
        }
    }

    /// End of the last packet, s.
    pub(super) fn seconds(&self) -> Option<f64> {
        Some(self.unit()? * self.due? as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symphonia::core::units::{Duration, Timestamp};

    fn packet(time: i64, duration: u64) -> Packet {
        Packet::new(1, Timestamp::new(time), Duration::new(duration), Vec::new())
    }

    #[test]
    fn gaps_are_found_with_and_without_durations() {
        for (duration, decoded) in [(20, 0.0), (0, 0.02)] {
            let mut clock = PacketClock::new(TimeBase::try_new(1, 1000));
            assert!(clock.gap_before(&packet(500, duration)).is_none(), "nothing is expected yet");
            clock.pass(&packet(500, duration), Some(decoded));
            for time in [480, 520, 524] {
                assert!(clock.gap_before(&packet(time, duration)).is_none(), "{time}");
            }
            let gap = clock.gap_before(&packet(540, duration)).unwrap();
            assert!((gap.seconds - 0.02).abs() < 1e-9 && !gap.is_counted);
            assert!(clock.gap_before(&packet(700_000, duration)).is_none(), "no hole of eleven minutes");
            assert_eq!(clock.seconds(), Some(0.52));
        }
        // Three packets in one block.
        let mut clock = PacketClock::new(TimeBase::try_new(1, 1000));
        (0..3).for_each(|_| clock.pass(&packet(40, 0), Some(0.02)));
        assert!(clock.gap_before(&packet(100, 0)).is_none() && clock.gap_before(&packet(120, 0)).is_some());
        // Jitter of less than a packet is no gap.
        let mut clock = PacketClock::new(TimeBase::try_new(1, 1000));
        clock.pass(&packet(0, 0), Some(0.06));
        assert!(clock.gap_before(&packet(100, 0)).is_none() && clock.gap_before(&packet(120, 0)).is_some());
    }

    #[test]
    fn durations_are_converted_to_samples() {
        let samples = |denominator: u32, duration: u64, rate: u32| {
            PacketClock::new(TimeBase::try_new(1, denominator)).samples(duration, rate)
        };
        assert_eq!(samples(48_000, 1_024, 48_000), (1_024, 0));
        assert_eq!(samples(1_000, 64, 16_000), (1_024, 16));
        // 1024 samples and an error of less than a millisecond.
        assert_eq!(samples(1_000, 23, 44_100), (1_014, 45));
        assert_eq!(samples(90_000, 2_089, 44_100), (1_024, 1));
        assert_eq!(samples(1, u64::MAX, u32::MAX).0, u64::MAX);
        assert_eq!(PacketClock::new(None).samples(7, 48_000), (7, 0));
    }

    #[test]
    fn a_packet_that_is_not_decoded_is_a_gap_of_its_own() {
        let mut clock = PacketClock::new(TimeBase::try_new(1, 1000));
        clock.pass(&packet(0, 0), Some(0.02));
        clock.pass(&packet(20, 0), None);
        let gap = clock.gap_before(&packet(40, 0)).unwrap();
        assert!(gap.is_counted && (gap.seconds - 0.02).abs() < 1e-9);
        clock.pass(&packet(40, 0), Some(0.0));
        assert!(clock.gap_before(&packet(90, 0)).is_none() && clock.seconds().is_none());
    }
}
