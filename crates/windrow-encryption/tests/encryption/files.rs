//! An encrypted file beside a plain one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use windrow::vfs::{File, OpenMode, Vfs, read_exact_at, write_all_at};
use windrow_encryption::{EncryptedVfs, KeyRing};
use windrow_sim::SimDisk;

use crate::{encrypted, key};

#[derive(Debug, Clone)]
enum Step {
    Write(u64, usize),
    Append(usize),
    Truncate(u64),
    Read(u64, usize),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = prop_oneof![
        0..6000_u64,
        (0..12_u64).prop_map(|cell| cell * 480),
        (1..12_u64).prop_map(|cell| cell * 480 - 1),
    ];
    let length = prop_oneof![
        1..40_usize,
        1..2000_usize,
        Just(480_usize),
        Just(300_000_usize)
    ];
    let step = prop_oneof![
        3 => (place.clone(), length.clone()).prop_map(|(at, length)| Step::Write(at, length)),
        5 => length.clone().prop_map(Step::Append),
        1 => place.clone().prop_map(Step::Truncate),
        4 => (place, length).prop_map(|(at, length)| Step::Read(at, length)),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..30)
}

fn read_all(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.length().unwrap() as usize];
    read_exact_at(file, &mut bytes, 0).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_encrypted_file_equals_a_plain_one(steps in steps()) {
        let disk = SimDisk::new();
        let vfs = encrypted(&disk);
        vfs.create_dir_all(Path::new("/data")).unwrap();
        let path = Path::new("/data/file");
        let mut file = vfs.create(path).unwrap();
        let mut plain: Vec<u8> = Vec::new();
        let mut next = 1_u8;
        for step in steps {
            let at = match step {
                Step::Write(at, _) | Step::Truncate(at) | Step::Read(at, _) => at as usize,
                _ => plain.len(),
            };
            match step {
                Step::Write(_, length) | Step::Append(length) => {
                    let bytes: Vec<u8> = (0..length).map(|_| { next = next.wrapping_mul(31).wrapping_add(7); next }).collect();
                    write_all_at(&*file, &bytes, at as u64).unwrap();
                    plain.resize(plain.len().max(at + length), 0);
                    plain[at..at + length].copy_from_slice(&bytes);
                }
                Step::Truncate(_) => {
                    file.truncate(at as u64).unwrap();
                    plain.truncate(at);
                }
                Step::Read(_, length) => {
                    let mut bytes = vec![0; length];
                    let mut found = 0;
                    while found < length {
                        match file.read_at(&mut bytes[found..], (at + found) as u64).unwrap() {
                            0 => break,
                            count => found += count,
                        }
                    }
                    let expected = plain.get(at..).unwrap_or_default();
                    prop_assert_eq!(&bytes[..found], &expected[..length.min(expected.len())]);
                }
                Step::Reopen => file = vfs.open(path, OpenMode::ReadWrite).unwrap(),
            }
            prop_assert_eq!(file.length().unwrap(), plain.len() as u64);
        }
        prop_assert_eq!(read_all(&*file), &plain[..]);
        prop_assert_eq!(read_all(&*vfs.open(path, OpenMode::Read).unwrap()), plain);
    }
}

#[test]
fn a_name_of_a_key_has_bounds() {
    for name in ["", &"n".repeat(65)] {
        let disk = SimDisk::new();
        let keys = KeyRing::new(name, key(1));
        let vfs = EncryptedVfs::new(Arc::new(disk.clone()), Arc::new(keys));
        vfs.create_dir_all(Path::new("/data")).unwrap();
        vfs.create(Path::new("/data/file")).unwrap_err();
        assert_eq!(disk.list(Path::new("/data")).unwrap(), Vec::<String>::new());
    }
}

/// A full file of four cells, the bytes of the first three all alike, and its path.
fn alike(disk: &SimDisk, name: &str) -> PathBuf {
    let vfs = encrypted(disk);
    vfs.create_dir_all(Path::new("/data")).unwrap();
    let path = Path::new("/data").join(name);
    let file = vfs.create(&path).unwrap();
    write_all_at(&*file, &[7; 3 * 480], 0).unwrap();
    write_all_at(&*file, &[8; 100], 3 * 480).unwrap();
    path
}

/// Puts `sector` in the place of another one, and checks that nothing of it is read there.
fn check_refused(disk: &SimDisk, path: &Path, place: usize, sector: &[u8]) {
    let disk = SimDisk::from_image(disk.image());
    let mut bytes = disk.image().read(path).unwrap();
    bytes[place * 512..][..512].copy_from_slice(sector);
    disk.edit(|image| image.write(path, &bytes).unwrap());
    let found = read_all(&*encrypted(&disk).open(path, OpenMode::Read).unwrap());
    let again = read_all(&*encrypted(&disk).open(path, OpenMode::Read).unwrap());
    assert_eq!(found, again);
    for (number, cell) in (1..).zip(found.chunks(480)) {
        let kept = cell
            .iter()
            .filter(|byte| **byte == if number == 4 { 8 } else { 7 });
        let kept = kept.count();
        if number == place {
            assert!(kept < 20, "{kept} bytes of cell {number}");
        } else {
            assert_eq!(kept, cell.len());
        }
    }
}

#[test]
fn a_changed_cell_reads_as_nothing_of_it() {
    let disk = SimDisk::new();
    let path = alike(&disk, "file");
    let other = alike(&disk, "other");
    let bytes = disk.image().read(&path).unwrap();
    for bit in 0..512 * 8 {
        let mut sector = bytes[512..1024].to_vec();
        sector[bit / 8] ^= 1 << (bit % 8);
        check_refused(&disk, &path, 1, &sector);
    }
    // A cell of another place, of another file, and none.
    check_refused(&disk, &path, 2, &bytes[512..1024]);
    let others = disk.image().read(&other).unwrap();
    check_refused(&disk, &path, 1, &others[512..1024]);
    check_refused(&disk, &path, 3, &[0; 512]);
}

/// No bit of a header can be changed, and each change is damage: no key is asked for.
#[test]
fn a_changed_header_gives_no_bytes() {
    let disk = SimDisk::new();
    let path = alike(&disk, "file");
    let bytes = disk.image().read(&path).unwrap();
    for bit in 0..512 * 8 {
        let disk = SimDisk::from_image(disk.image());
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        disk.edit(|image| image.write(&path, &bytes).unwrap());
        let vfs = encrypted(&disk);
        let error = vfs.open(&path, OpenMode::ReadWrite).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{bit}: {error}");
        assert_eq!(disk.image().read(&path).unwrap(), bytes);
    }
}
