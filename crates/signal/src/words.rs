//! Numbers in messages.

/// Formats a number of things whose plural ends in `s`: `1 file`, `2 files`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "click")), ["0 clicks", "1 click", "2 clicks"]);
    }
}
