//! Windows of a warm-up.

/// Step counts at which the metric is re-estimated, from the draws since the previous one.
///
/// Windows double in size; the last one ends `closing` steps, at least one, before the warm-up, so that the step size settles
/// on the final metric. A warm-up that is too short for a window has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Windows {
    ends: Vec<usize>,
}

/// Whether a warm-up with minibatches evaluates all data, `steps` steps after a change of coordinates.
pub(crate) fn looks(steps: usize) -> bool {
    steps < 20 || steps.is_multiple_of(20)
}

/// Draws of the first window.
const FIRST: usize = 10;

impl Windows {
    /// Creates the windows of a warm-up of `steps` steps, for `chains` interleaved chains.
    pub fn new(steps: usize, closing: usize, chains: usize) -> Self {
        let last = steps.saturating_sub(closing.max(1));
        let mut ends = Vec::new();
        let (mut size, mut end) = (FIRST * chains, FIRST * chains);
        while end <= last {
            // The next window would not fit: this one takes the remainder.
            if end + 2 * size > last {
                ends.push(last);
                break;
            }
            ends.push(end);
            size *= 2;
            end += size;
        }
        Self { ends }
    }

    /// Whether there is no window.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether a window ends after this many steps.
    pub fn ends_at(&self, steps: usize) -> bool {
        self.ends.binary_search(&steps).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Windows;

    #[test]
    fn windows_double_and_the_last_takes_what_is_left() {
        assert_eq!(Windows::new(1000, 50, 1).ends, [10, 30, 70, 150, 310, 950]);
        assert_eq!(Windows::new(100, 30, 1).ends, [10, 30, 70]);
        assert_eq!(Windows::new(1000, 50, 5).ends, [50, 150, 350, 950]);
        assert_eq!(Windows::new(15, 10, 1).ends, []);
        assert_eq!(Windows::new(70, 0, 1).ends, [10, 69]);
        assert!(Windows::new(100, 30, 1).ends_at(30) && !Windows::new(100, 30, 1).ends_at(31));
    }
}
