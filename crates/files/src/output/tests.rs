//! Tests of files that are written.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_that_is_replaced_hands_on_its_permissions() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    for mode in [0o600, 0o640, 0o444] {
        let _ = fs::remove_file(&path);
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        let seen = file.file.as_file().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(seen, 0o600, "nobody else reads what is not complete");
        file.write_all(b"after").unwrap();
        file.persist().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn links_are_followed_wherever_they_lead() {
    let folder = TempDir::new().unwrap();
    let [link, target, circle] = ["link", "target", "circle"].map(|name| folder.path().join(name));
    symlink("target", &link).unwrap();
    for content in ["new", "replaced"] {
        write_atomic(&link, content.as_bytes()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), content);
    }
    symlink("circle", &circle).unwrap();
    let error = write_atomic(&circle, b"x").unwrap_err().to_string();
    assert!(error.contains("symbolic links"), "{error}");
    assert_eq!(names(&folder), ["circle", "link", "target"]);
}

#[test]
fn a_name_that_is_too_long_is_refused_before_any_work() {
    let folder = TempDir::new().unwrap();
    let error = OutputFile::create(folder.path().join("a".repeat(300))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidFilename);
    assert!(names(&folder).is_empty());
}

#[test]
fn leftovers_go_and_what_is_being_written_stays() {
    let folder = TempDir::new().unwrap();
    let being_written = OutputFile::create(folder.path().join("a")).unwrap();
    for name in [".alphamf-left.part", ".alphamf-mine", "b.part"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    // Simulates another run.
    SWEPT.lock().unwrap().remove(&fs::canonicalize(folder.path()).unwrap());
    write_atomic(folder.path().join("b"), b"b").unwrap();
    being_written.persist().unwrap();
    assert_eq!(names(&folder), [".alphamf-mine", "a", "b", "b.part"]);
}

#[test]
fn a_file_that_appears_meanwhile_stays() {
    let folder = TempDir::new().unwrap();
    let [path, link] = ["a", "link"].map(|name| folder.path().join(name));
    symlink("a", &link).unwrap();
    for written in [&path, &link] {
        let mut file = OutputFile::create_new(written).unwrap();
        file.write_all(b"mine").unwrap();
        fs::write(&path, "another's").unwrap();
        let error = file.persist().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("has appeared"), "{error}");
        let content = fs::read_to_string(&path).unwrap();
        assert_eq!((content.as_str(), names(&folder)), ("another's", vec!["a".into(), "link".into()]));
        // A file that existed before is kept, too.
        let file = OutputFile::create_new(written).unwrap();
        assert_eq!(file.persist().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::remove_file(&path).unwrap();
    }
    let mut file = OutputFile::create_new(&link).unwrap();
    file.write_all(b"mine").unwrap();
    file.persist().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}
