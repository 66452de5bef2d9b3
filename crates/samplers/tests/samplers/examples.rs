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

/// Every command of the papers' page names an example, options that it has, and data where it needs them.
#[test]
fn commands_of_the_papers_can_be_run() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    // The page is not part of the package.
    let Ok(page) = std::fs::read_to_string(root.join("../../docs/papers.md")) else { return };
    assert!(!page.contains("`... "), "a command without its example");
    let commands: Vec<&str> = page.split('`').filter_map(|span| span.strip_prefix("example ")).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "NAME") {
        let (name, options) = command.split_once(" -- ").unwrap_or((command, ""));
        let source = std::fs::read_to_string(root.join("examples").join(name).with_extension("rs"));
        let source = source.unwrap_or_else(|error| panic!("{command}: {error}"));
        for option in options.split(' ').filter(|option| option.starts_with("--")) {
            assert!(source.contains(&format!("{option:?}")), "{command}: no option {option}");
        }
        let needs_data = source.contains("option(\"--data\").ok_or");
        assert!(!needs_data || options.contains("--data DIR"), "{command}: it ends without --data");
    }
}
