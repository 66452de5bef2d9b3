//! Options of the examples.

use super::example_parts::{check_arguments, settled, whole_number};

#[test]
fn examples_refuse_options_that_they_do_not_have() {
    let check = |arguments: &[&str]| {
        check_arguments(arguments.iter().map(Into::into), &["--data", "--only"])
            .map_err(|error| error.to_string())
    };
    for known in [&[][..], &["--only", "HMC"], &["--out", "here", "--data", "there"]] {
        assert_eq!(check(known), Ok(()));
    }
    for (arguments, expected) in [
        (&["--onyl", "HMC"][..], "--onyl: expected --data, --only, --out"),
        (&["--data"], "--data: expected a value"),
        (&["HMC"], "HMC: expected --data, --only, --out"),
    ] {
        assert_eq!(check(arguments), Err(expected.to_owned()));
    }
}

#[test]
fn examples_take_no_numbers_that_leave_nothing_to_do() {
    assert_eq!(whole_number("--tuning", "500", 500).ok(), Some(500));
    for text in ["499", "0", "-1", "many", ""] {
        let error = whole_number("--tuning", text, 500).unwrap_err().to_string();
        assert_eq!(error, format!("--tuning {text}: expected a whole number, at least 500"));
    }
    assert_eq!([settled(&[2.0]), settled(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 3.0, 4.0, 6.0])], [2.0, 5.0]);
}
