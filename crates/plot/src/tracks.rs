//! Values over time, in bounded memory.

/// Maximum number of columns.
const MAX_COLUMNS: usize = 4_096;

/// Lowest and highest sample over time.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Samples per column.
    merged: usize,
    samples: usize,
    columns: Vec<(f32, f32)>,
}

impl Default for Envelope {
    fn default() -> Self {
        Self::new()
    }
}

impl Envelope {
    /// Creates an envelope without samples.
    #[must_use]
    pub fn new() -> Self {
        Self { merged: 16, samples: 0, columns: Vec::new() }
    }

    /// Appends the next samples of every channel.
    ///
    /// # Panics
    /// If a channel is shorter than the first.
    pub fn push(&mut self, channels: &[&[f32]]) {
        let length = channels.first().map_or(0, |channel| channel.len());
        let mut start = 0;
        while start < length {
            if self.samples == self.merged * MAX_COLUMNS {
                let merge = |pair: &[(f32, f32)]| {
                    pair.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), (a, b)| {
                        (low.min(*a), high.max(*b))
                    })
                };
                self.columns = self.columns.chunks(2).map(merge).collect();
                self.merged *= 2;
            }
            let end = length.min(start + self.merged - self.samples % self.merged);
            let samples = channels.iter().flat_map(|channel| &channel[start..end]);
            let (low, high) = samples
                .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
            if self.samples.is_multiple_of(self.merged) {
                self.columns.push((low, high));
            } else if let Some(last) = self.columns.last_mut() {
                *last = (last.0.min(low), last.1.max(high));
            }
            self.samples += end - start;
            start = end;
        }
    }

    /// The largest magnitude, 0 for no samples.
    pub(crate) fn peak(&self) -> f32 {
        self.columns.iter().fold(0.0, |peak, (low, high)| peak.max(-low).max(*high))
    }

    /// Start and end of every column as fractions of the whole, and its lowest and highest sample.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (f64, f64, f32, f32)> {
        let whole = self.samples as f64;
        self.columns.iter().enumerate().map(move |(i, (low, high))| {
            let (start, end) = (i * self.merged, ((i + 1) * self.merged).min(self.samples));
            (start as f64 / whole, end as f64 / whole, *low, *high)
        })
    }
}

/// Means of several quantities over slots of time.
#[derive(Debug, Clone)]
pub struct Means<const N: usize> {
    /// Slots per column.
    merged: usize,
    slots: usize,
    sums: Vec<[f64; N]>,
}

impl<const N: usize> Default for Means<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Means<N> {
    /// Creates means without slots.
    #[must_use]
    pub fn new() -> Self {
        Self { merged: 1, slots: 0, sums: Vec::new() }
    }

    /// Appends the values of the next slot.
    pub fn push(&mut self, values: [f64; N]) {
        let add = |a: &[f64; N], b: &[f64; N]| std::array::from_fn(|i| a[i] + b[i]);
        if self.slots == self.merged * MAX_COLUMNS {
            self.sums = self.sums.chunks_exact(2).map(|pair| add(&pair[0], &pair[1])).collect();
            self.merged *= 2;
        }
        if self.slots.is_multiple_of(self.merged) {
            self.sums.push(values);
        } else if let Some(last) = self.sums.last_mut() {
            *last = add(last, &values);
        }
        self.slots += 1;
    }

    /// Whether there are no slots.
    pub(crate) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// The middle of every column, in slots, and the means.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (f64, [f64; N])> {
        self.sums.iter().enumerate().map(move |(i, sums)| {
            let (start, end) = (i * self.merged, ((i + 1) * self.merged).min(self.slots));
            let count = (end - start) as f64;
            (0.5 * (start + end) as f64, sums.map(|sum| sum / count))
        })
    }

    /// Like [`columns`](Self::columns), with each mean over at least `slots` slots around it.
    pub(crate) fn smoothed(&self, slots: usize) -> Vec<(f64, [f64; N])> {
        let reach = slots.div_ceil(self.merged) / 2;
        let columns: Vec<_> = self.columns().collect();
        let around = |i: usize| &columns[i.saturating_sub(reach)..(i + reach + 1).min(columns.len())];
        let mean = |i: usize| {
            let around = around(i);
            std::array::from_fn(|n| {
                around.iter().map(|(_, means)| means[n]).sum::<f64>() / around.len() as f64
            })
        };
        (0..columns.len()).map(|i| (columns[i].0, mean(i))).collect()
    }
}
