//! Reads arbitrary bytes as a dictionary; writes and reads valid ones again.
#![no_main]

use alphamf::model::Dictionary;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Dictionary::from_bytes(bytes) {
        Ok(dictionary) => {
            assert!(dictionary.spectra().iter().all(|x| x.is_finite() && *x >= 0.0));
            let again = Dictionary::from_bytes(&dictionary.to_bytes().unwrap()).unwrap();
            assert_eq!(dictionary.spectra(), again.spectra());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
