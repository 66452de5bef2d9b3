//! Documents agree with the options. Tables of options are generated, and tested in `crates/cli/src/cli/help_tests.rs`.

use crate::read;

#[test]
fn the_python_page_counts_its_options() {
    let source = read("bindings/python/alphamf/_denoiser.py");
    let class = source.split("class Denoiser:").nth(1).unwrap();
    let signature = class.split("def __init__(").nth(1).unwrap().split(") ->").next().unwrap();
    let count = signature.lines().filter(|line| line.contains(": ") && line.trim().ends_with(',')).count();
    let page = read("bindings/python/README.md");
    assert!(page.contains(&format!("takes {count} of the program's")), "Denoiser has {count} options");
}
