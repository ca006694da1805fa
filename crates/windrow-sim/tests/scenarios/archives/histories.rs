//! Random histories with archivings in between. Each state behind a commit is restored as the model had it, or refused if the
//! list says that it cannot be reached.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow::backup::{Backups, FolderStore, Purge, RestoreTo};
use windrow::{Db, ErrorKind};
use windrow_sim::history::{Generator, Operation, Profile};
use windrow_sim::session::{Session, contents, verify};
use windrow_sim::settings::Setting;

use crate::backups::{BACKUPS, RESTORED, remove_all};

/// The store on the disk of the present process.
fn store(session: &Session) -> Backups {
    let vfs = Arc::new(session.disk.clone());
    let store = FolderStore::open(Arc::clone(&vfs) as _, BACKUPS).unwrap();
    let backups = Backups::new(Arc::new(store)).with_vfs(vfs);
    backups.with_runtime(Arc::new(session.runtime.clone()))
}

#[test]
fn each_state_of_a_history_is_restored_or_known_to_be_missing() {
    let (mut restored, mut missing, mut purged) = (0, 0, 0);
    for (seed, setting) in (1..).zip(Setting::logged().iter().cycle().take(18)) {
        let mut session = Session::new(seed, setting.clone());
        session.open().unwrap();
        session.db().archive(&store(&session)).unwrap();
        let mut generator = Generator::new(seed, Profile::default());
        // The number of commits of the model behind each sequence number.
        let mut states: BTreeMap<u64, usize> = BTreeMap::new();
        for round in 0..90 {
            let operation = generator.operation();
            session.apply(&operation).unwrap();
            let count = session.lock_model().begun();
            states.insert(session.db().stats().sequence, count);
            if round % 8 == 5 && !matches!(operation, Operation::Hold) {
                session.db().archive(&store(&session)).unwrap();
            }
            if round % 30 == 20 {
                session.db().backup(&store(&session)).unwrap();
            }
        }
        let backups = store(&session);
        session.db().archive(&backups).unwrap();
        assert!(backups.verify(None).unwrap().is_sound());
        if seed % 3 == 0 {
            purged += backups.purge(Purge::KeepNewest(2)).unwrap().stretches;
        }
        let reachable = backups.reachable().unwrap();
        assert!(reachable.damage.is_empty(), "{:?}", reachable.damage);
        for (sequence, count) in states {
            let ranges = reachable.states.iter().flat_map(|it| &it.sequences);
            let is_reachable = ranges.clone().any(|range| range.contains(&sequence));
            match backups.restore_to(RestoreTo::Sequence(sequence), None, RESTORED) {
                Ok(found) => {
                    assert_eq!(found.sequence, sequence);
                    assert!(is_reachable, "{sequence} in {}", setting.name);
                    restored += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                    assert!(!is_reachable, "{error} in {}", setting.name);
                    missing += 1;
                    continue;
                }
            }
            let options = setting.on(&session.disk, &session.runtime);
            let copy = Db::open_read_only(RESTORED, options).unwrap();
            assert_eq!(copy.stats().sequence, sequence);
            let expected = session.lock_model().state(count);
            assert!(
                contents(&copy).unwrap() == expected,
                "sequence number {sequence} of seed {seed} in {}",
                setting.name
            );
            verify(&copy).unwrap();
            copy.close().unwrap();
            remove_all(&session.disk, RESTORED);
        }
    }
    assert!(
        restored > 800 && missing > 20 && purged > 5,
        "{restored}, {missing}, {purged}"
    );
}
