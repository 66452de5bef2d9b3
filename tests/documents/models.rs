//! The cards of the models agree with their files.

use crate::{read, root};
use serde_json::Value;
use std::fs;

/// The number of learned values in a file of tensors; scales of quantisation are not counted.
fn weights(name: &str) -> u64 {
    let bytes = fs::read(root().join("models").join(name)).unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let header: Value = serde_json::from_slice(&rest[..u64::from_le_bytes(*length) as usize]).unwrap();
    let tensors = header.as_object().unwrap().iter();
    let learned = tensors.filter(|(name, _)| !["__metadata__", "scales"].contains(&name.as_str()));
    let size = |tensor: &Value| {
        tensor["shape"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).product::<u64>()
    };
    learned.map(|(_, tensor)| size(tensor)).sum()
}

#[test]
fn cards_have_the_number_of_weights_of_their_files() {
    let cards = read("models/README.md");
    let mut compared = 0;
    for card in cards.split("\n## `").skip(1) {
        let (name, text) = card.split_once('`').unwrap();
        let content = text.lines().find(|line| line.starts_with("| content |")).unwrap();
        if let Some((before, _)) = content.split_once(" weights") {
            let stated = before.rsplit(' ').next().unwrap().replace(',', "");
            assert_eq!(stated, weights(name).to_string(), "{name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 6, "cards with a number of weights");
}
