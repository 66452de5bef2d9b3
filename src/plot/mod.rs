//! Pictures of recordings.

mod axis;
mod columns;
mod figure;

pub(crate) use axis::Axis;
pub use columns::Columns;
pub use figure::{Figure, Panel};

/// Range of levels that a spectrogram shows, in dB below the loudest.
pub const LEVELS: f32 = 70.0;

/// Colours from silence to the loudest, evenly spaced: black, violet, red, orange, pale yellow.
const COLOURS: [[u8; 3]; 7] =
    [[0, 0, 4], [34, 11, 84], [101, 21, 110], [174, 48, 92], [228, 90, 49], [251, 155, 6], [252, 255, 164]];

/// The colour of a shade.
fn colour(shade: u8) -> [u8; 3] {
    let place = f32::from(shade) / 255.0 * (COLOURS.len() - 1) as f32;
    let below = (place as usize).min(COLOURS.len() - 2);
    let share = place - below as f32;
    std::array::from_fn(|channel| {
        let [a, b] = [COLOURS[below], COLOURS[below + 1]].map(|colour| f32::from(colour[channel]));
        (a + share * (b - a)).round() as u8
    })
}
