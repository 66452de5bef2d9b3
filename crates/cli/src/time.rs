//! Parsing of times in options and in the output of ffmpeg.

/// Parses `seconds`, `minutes:seconds` or `hours:minutes:seconds`, to seconds.
pub fn parse_time(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let parts: Vec<&str> = text.split(':').collect();
    for (place, part) in parts.iter().enumerate() {
        let value: f64 = part.parse().ok()?;
        let whole = place + 1 == parts.len() || value.fract() == 0.0;
        let in_place = place == 0 || value < 60.0;
        if !(value.is_finite() && value.is_sign_positive() && whole && in_place) {
            return None;
        }
        total = 60.0 * total + value;
    }
    (parts.len() <= 3).then_some(total)
}
