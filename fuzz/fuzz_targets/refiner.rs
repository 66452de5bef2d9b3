//! Any bytes as a refiner.
#![no_main]

use alphamf::refiner::Refiner;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Refiner::from_bytes(bytes) {
        Ok(refiner) => {
            let again = Refiner::from_bytes(&refiner.to_bytes().unwrap()).unwrap();
            assert_eq!(refiner, again);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
