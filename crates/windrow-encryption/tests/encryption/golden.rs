//! The layout: a file that an earlier build has written.

use std::path::Path;

use windrow::vfs::{OpenMode, Vfs, read_exact_at, write_all_at};
use windrow_sim::SimDisk;

use crate::encrypted;

/// Seven hundred bytes in two cells, under the key `first`, whose bytes are all 1.
const FILE: &[u8] = include_bytes!("../golden/file");

fn content() -> Vec<u8> {
    (0..700_u32).map(|place| (place % 251) as u8).collect()
}

#[test]
fn files_of_earlier_builds_are_read() {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/data")).unwrap();
    let path = Path::new("/data/file");
    disk.edit(|image| image.write(path, FILE).unwrap());
    let file = encrypted(&disk).open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(bytes, content());
}

#[test]
#[ignore = "changes the file"]
#[expect(clippy::disallowed_methods, reason = "a file of the repository")]
fn make_the_file_anew() {
    let disk = SimDisk::new();
    let vfs = encrypted(&disk);
    vfs.create_dir_all(Path::new("/data")).unwrap();
    let path = Path::new("/data/file");
    write_all_at(&*vfs.create(path).unwrap(), &content(), 0).unwrap();
    let bytes = disk.image().read(path).unwrap();
    std::fs::write("tests/golden/file", bytes).unwrap();
}
