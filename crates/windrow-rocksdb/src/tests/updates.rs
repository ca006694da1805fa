//! Updates since a sequence number.

use std::time::Duration;

use std::sync::Arc;

use windrow::{Error, ErrorKind};
use windrow_ffi::iterator::Entries;

use super::{creating, open, open_with, put};
use crate::batch::{Write, WriteBatch};
use crate::database::Database;
use crate::families::Family;
use crate::options::{FamilyOptions, LockTimeouts, ReadOptions, WriteOptions};
use crate::status;
use crate::updates::Updates;

fn since(database: &Database, sequence: u64) -> Result<Updates, Error> {
    Updates::since(database, sequence)
}

/// The writes of the batch at which `updates` are, with its sequence number. Moves them.
fn take(updates: &mut Updates) -> Option<(u64, String)> {
    assert_eq!(updates.error(), None);
    let (first, batch) = updates.batch()?;
    let writes: Vec<_> = batch.writes().map(Result::unwrap).collect();
    let taken = Some((first, format!("{writes:?}")));
    updates.advance();
    taken
}

fn writes(writes: &[(u32, Write<'_>)]) -> String {
    format!("{writes:?}")
}

fn contents(family: &Arc<Family>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iterator = Database::iterator(family, &ReadOptions::default());
    let mut found = Vec::new();
    iterator.seek_to_first();
    while let Some(key) = iterator.key().map(<[u8]>::to_vec) {
        found.push((key, iterator.value().unwrap().to_vec()));
        iterator.next();
    }
    assert_eq!(iterator.error(), None);
    found
}

#[test]
fn updates_come_in_the_order_of_the_commits_and_give_an_equal_database() {
    let folder = tempfile::tempdir().unwrap();
    let (database, families) = open_with(folder.path(), &creating(), &["one"]).unwrap();
    let other = tempfile::tempdir().unwrap();
    let (copy, copied) = open_with(other.path(), &creating(), &["one"]).unwrap();
    let options = WriteOptions::default();
    for round in 0..50_u32 {
        let key = (round % 7).to_string();
        let value = round.to_string();
        let mut batch = WriteBatch::default();
        batch.add(round % 2, Write::Put(key.as_bytes(), value.as_bytes()));
        match round % 5 {
            0 => batch.add(1, Write::Delete(b"3")),
            1 => batch.add(0, Write::DeleteRange(b"2", b"4")),
            2 => batch.add(0, Write::SingleDelete(b"5")),
            _ => batch.add_log_data(b"no write"),
        }
        database.write(&batch, options).unwrap();
        if round == 20 {
            // In tables alone: the copy goes on with what it has.
            let mut updates = since(&database, 0).unwrap();
            while let Some((_, batch)) = updates.batch() {
                copy.write(batch, options).unwrap();
                updates.advance();
            }
            assert_eq!(updates.error(), None);
            database.wait_idle(true, Duration::ZERO).unwrap();
        }
    }
    let mut updates = since(&database, copy.snapshot().sequence() + 1).unwrap();
    while let Some((_, batch)) = updates.batch() {
        copy.write(batch, options).unwrap();
        updates.advance();
    }
    assert_eq!(updates.error(), None);
    for (family, copied) in families.iter().zip(&copied) {
        assert_eq!(contents(family), contents(copied));
        assert!(!contents(family).is_empty());
    }
    assert_eq!(
        database.snapshot().sequence(),
        copy.snapshot().sequence(),
        "numbers count the same"
    );
}

#[test]
fn what_is_not_there_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = creating();
    options.common.write_buffer_bytes = 64 << 10;
    let (database, families) = open_with(folder.path(), &options, &[]).unwrap();
    let family = &families[0];
    put(&database, family, "a", "1");
    let refused = |sequence| {
        let error = since(&database, sequence).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(status::of_updates(&error).starts_with("NotFound: "));
    };
    refused(2);
    let mut updates = since(&database, 1).unwrap();
    // A log goes when its entries are in tables, and later ones are in another log.
    let value = "v".repeat(100);
    for key in 0..3000 {
        put(&database, family, &format!("{key}"), &value);
    }
    database.wait_idle(true, Duration::ZERO).unwrap();
    refused(0);
    refused(1);
    // What has begun goes on as far as it can, and does not leave anything out.
    let expected = writes(&[(0, Write::Put(b"a", b"1"))]);
    let mut next = 1;
    while let Some((first, batch)) = updates.batch() {
        assert_eq!(first, next);
        if first == 1 {
            let found: Vec<_> = batch.writes().map(Result::unwrap).collect();
            assert_eq!(writes(&found), expected);
        }
        next += u64::from(batch.count());
        updates.advance();
    }
    let newest = database.snapshot().sequence();
    assert!(updates.error().is_some() || next == newest + 1);
}

/// I1
#[test]
fn a_write_names_its_own_family_and_no_later_one_of_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let (database, families) = open_with(folder.path(), &creating(), &["one"]).unwrap();
    put(&database, &families[0], "a", "1");
    put(&database, &families[1], "k", "old");
    put(&database, &families[0], "b", "2");
    let mut updates = since(&database, 0).unwrap();
    let expected = writes(&[(0, Write::Put(b"a", b"1"))]);
    assert_eq!(updates.batch().map(|(first, _)| first), Some(3));
    database.drop_family(&families[1]).unwrap();
    let options = creating();
    let again = FamilyOptions {
        name: "one",
        options: &options,
        ttl: None,
    };
    let new = database.create_family(&again).unwrap();
    put(&database, &new, "k", "new");
    assert_eq!(take(&mut updates), Some((3, expected)));
    let expected = writes(&[(0, Write::Put(b"b", b"2"))]);
    assert_eq!(take(&mut updates), Some((5, expected)));
    let expected = writes(&[(new.id, Write::Put(b"k", b"new"))]);
    let newest = database.snapshot().sequence();
    assert_eq!(take(&mut updates), Some((newest, expected)));
    assert_eq!(take(&mut updates), None);
}

#[test]
fn a_write_that_takes_locks_is_one_update() {
    let folder = tempfile::tempdir().unwrap();
    let (mut database, _) = open(folder.path());
    database.locks = Some(LockTimeouts::default());
    let mut batch = WriteBatch::default();
    batch.add(0, Write::Put(b"a", b"1"));
    batch.add(0, Write::Put(b"b", b"2"));
    database.write(&batch, WriteOptions::default()).unwrap();
    let mut updates = since(&database, 2).unwrap();
    let expected = writes(&[(0, Write::Put(b"a", b"1")), (0, Write::Put(b"b", b"2"))]);
    assert_eq!(take(&mut updates), Some((1, expected)));
    assert_eq!(take(&mut updates), None);
}
