//! Reads arbitrary bytes as an evaluation protocol. Variants of a valid protocol must name folders within the output
//! folder, and have settings that can be validated.
#![no_main]

use alphamf::denoiser::Settings;
use alphamf_eval::Protocol;
use libfuzzer_sys::fuzz_target;
use std::io::Write;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let protocol = match Protocol::read(file.path()) {
        Ok(protocol) => protocol,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    match protocol.variants::<Settings>() {
        Ok(variants) => {
            for variant in variants {
                let place = Path::new("out").join(&variant.name);
                assert!(place.starts_with("out") && place.components().count() <= 2, "{}", variant.name);
                let _ = variant.settings.validate();
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
