//! Levels, delay and lost audio in a line.

/// Readings that are shown while audio runs.
#[derive(Debug, Clone, Copy)]
pub struct Readings {
    /// Noise and speech level in dBFS, gain in dB.
    pub noise_dbfs: f32,
    pub speech_dbfs: f32,
    pub gain_db: f32,
    /// Probability of speech, 0 to 1.
    pub speech_probability: f32,
    pub delay_seconds: f64,
    /// Audio that was dropped by overruns.
    pub dropped_seconds: f64,
    /// Silence that was inserted by underruns.
    pub missing_seconds: f64,
}

/// Level of an empty meter, dBFS.
const MIN_LEVEL_DBFS: f32 = -60.0;
/// Steps of a meter.
const MIN_STEPS: usize = 4;
const MAX_STEPS: usize = 24;
/// Minimum steps of each meter beside the gain.
const AMPLE_STEPS: usize = 10;

/// Colour sequences of a terminal.
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const RESET: &str = "\x1b[0m";

impl Readings {
    fn lost_seconds(&self) -> f64 {
        self.dropped_seconds + self.missing_seconds
    }

    /// Formats all readings in words, for a log.
    pub fn words(&self) -> String {
        let mut line = format!(
            "speech {:.0} dBFS, noise {:.0} dBFS, gain {:.0} dB, voice {:.0} %, delay {:.0} ms",
            self.speech_dbfs,
            self.noise_dbfs,
            self.gain_db,
            100.0 * self.speech_probability,
            1000.0 * self.delay_seconds
        );
        if self.lost_seconds() > 0.0 {
            let (dropped, missing) = (self.dropped_seconds, self.missing_seconds);
            line.push_str(&format!(", {dropped:.2} s dropped, {missing:.2} s missing"));
        }
        line
    }

    /// Formats meters for a terminal of `columns` columns, one of which stays free: a full line would wrap.
    ///
    /// Lost audio replaces the probability of speech. The gain is shown if it fits.
    pub fn meters(&self, columns: usize, colours: bool) -> String {
        let paint = |colour: &str, text: &str| match colours {
            true => format!("{colour}{text}{RESET}"),
            false => text.to_owned(),
        };
        let speech = format!(" {:>4.0} dB", self.speech_dbfs);
        let noise = format!(" {:>4.0} dB", self.noise_dbfs);
        let delay = format!("  delay {:>3.0} ms", 1000.0 * self.delay_seconds);
        let lost = self.lost_seconds() > 0.0;
        let third = match lost {
            true => format!("  lost {:.2} s", self.lost_seconds()),
            false => format!("  voice {:>3.0} %", 100.0 * self.speech_probability),
        };
        let words: usize =
            ["speech ", &speech, "  noise ", &noise, &third, &delay].map(str::len).iter().sum();
        let width = columns.saturating_sub(1);
        let mut room = width.saturating_sub(words);
        let mut gain = format!("  gain {:>4.0} dB", self.gain_db);
        if room >= gain.len() + 2 * AMPLE_STEPS {
            room -= gain.len();
        } else {
            gain.clear();
        }
        let steps = room / 2;
        if steps < MIN_STEPS {
            // Without meters, and cut to the width.
            return format!("speech{speech}  noise{noise}{third}{delay}").chars().take(width).collect();
        }
        let steps = steps.min(MAX_STEPS);
        let bar = |level: f32, colour: &str| {
            let filled = steps as f32 * (1.0 - level / MIN_LEVEL_DBFS);
            let filled = filled.round().clamp(0.0, steps as f32) as usize;
            paint(colour, &"█".repeat(filled)) + &"░".repeat(steps - filled)
        };
        let third = if lost { paint(RED, &third) } else { third };
        let (speech_bar, noise_bar) = (bar(self.speech_dbfs, GREEN), bar(self.noise_dbfs, YELLOW));
        format!("speech {speech_bar}{speech}  noise {noise_bar}{noise}{third}{gain}{delay}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Readings = Readings {
        noise_dbfs: -60.0,
        speech_dbfs: -30.0,
        gain_db: -12.4,
        speech_probability: 0.87,
        delay_seconds: 0.0316,
        dropped_seconds: 0.0,
        missing_seconds: 0.0,
    };
    const LOUD: Readings = Readings {
        noise_dbfs: -120.0,
        speech_dbfs: 7.0,
        gain_db: -120.0,
        speech_probability: 0.0,
        delay_seconds: 1.234,
        dropped_seconds: 3.0,
        missing_seconds: 119.4,
    };

    #[test]
    fn meters_are_a_line_of_eighty_columns() {
        assert_eq!(
            QUIET.meters(80, false),
            "speech █████░░░░░  -30 dB  noise ░░░░░░░░░░  -60 dB  voice  87 %  delay  32 ms"
        );
        assert_eq!(
            LOUD.meters(80, false),
            "speech █████████    7 dB  noise ░░░░░░░░░ -120 dB  lost 122.40 s  delay 1234 ms"
        );
    }

    #[test]
    fn wide_terminals_have_room_for_the_gain() {
        assert!(!QUIET.meters(80, false).contains("gain"));
        assert!(QUIET.meters(100, false).ends_with("  voice  87 %  gain  -12 dB  delay  32 ms"));
    }

    #[test]
    fn meters_never_fill_the_line() {
        for readings in [QUIET, LOUD] {
            for columns in 1..200 {
                let line = readings.meters(columns, false);
                assert!(line.chars().count() < columns, "{columns}: {line}");
                assert!(columns < 60 || line.contains("ms"), "{columns}: {line}");
            }
        }
    }

    #[test]
    fn colours_change_nothing_else() {
        for readings in [QUIET, LOUD] {
            let painted = readings.meters(80, true);
            assert_ne!(painted, readings.meters(80, false));
            let plain =
                [GREEN, YELLOW, RED, RESET].iter().fold(painted, |line, colour| line.replace(colour, ""));
            assert_eq!(plain, readings.meters(80, false));
        }
    }

    #[test]
    fn words_name_what_was_lost() {
        assert_eq!(QUIET.words(), "speech -30 dBFS, noise -60 dBFS, gain -12 dB, voice 87 %, delay 32 ms");
        assert!(LOUD.words().ends_with("delay 1234 ms, 3.00 s dropped, 119.40 s missing"));
    }
}
