//! Names the shared library by the version of its interface, as programs look for it when they start: before 1.0, every minor
//! version may remove functions.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let interface = match (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")) {
            ("0", minor) => format!("0.{minor}"),
            (major, _) => major.to_owned(),
        };
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libalphamf_c.so.{interface}");
    }
}
