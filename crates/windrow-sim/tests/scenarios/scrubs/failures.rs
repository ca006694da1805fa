//! What a scrub does if its check fails or files go away meanwhile, and what is no damage.

use super::*;

/// What jobs have failed at.
fn failures(options: Options) -> (Options, Receiver<(&'static str, String)>) {
    listen(options, |event| match event {
        Event::JobFailed { job, error, .. } => Some((*job, error.clone())),
        _ => None,
    })
}

#[test]
fn a_scrub_that_panics_ends_with_a_report_and_poisons_nothing() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let hooked = HookedDisk::new(&disk);
    let (options, events) = failures(make_large(&disk, &runtime));
    let options = options.with_vfs(Arc::new(hooked.clone()));
    let panic_at_tables = |_| {
        let hook = |path: &Path| assert!(path.extension().is_none_or(|it| it != "table"));
        *hooked.hook.lock().unwrap() = Some(Box::new(hook));
    };
    let (db, keyspace) = open(options);
    pass(&runtime, 0, 400, panic_at_tables);
    let (job, error) = events.try_recv().unwrap();
    assert_eq!(job, "scrub");
    assert!(error.contains(".table panicked"), "{error}");
    keyspace.insert("still", "written").unwrap();
    assert_eq!(db.stats().damaged_files, 0);
    *hooked.hook.lock().unwrap() = None;
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    // One panic is not the last try.
    panic_at_tables(0);
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
}

#[test]
fn too_many_open_files_are_an_error_after_three_tries_and_no_damage() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let (options, events) = failures(options);
    let (db, keyspace) = open(options);
    let fault = Fault::io(OperationKind::Read, 0).with(Effect::TooManyFiles);
    let note = || disk.image().read(&Path::new(FOLDER).join("SCRUB")).ok();
    // The pass begins.
    pass(&runtime, 0, 65, |_| ());
    let begun = note();
    assert!(begun.is_some());
    disk.set_faults([fault.from_then_on()]);
    let at = Cell::new(0);
    pass(&runtime, 400, 2, |_| {
        at.set(at.get() + events.try_iter().count());
    });
    assert_eq!((at.get(), note()), (0, begun.clone()));
    pass(&runtime, 402, 1, |_| ());
    let (job, error) = events.try_recv().unwrap();
    assert!(
        job == "scrub" && error.contains("could not read"),
        "{error}"
    );
    let report = db.scrub(&Scrub::default()).unwrap();
    assert!(report.damage.is_empty() && !report.is_sound());
    assert!(report.left_out.len() >= count(&disk, "table"), "{report:?}");
    assert_eq!(events.try_iter().count(), report.left_out.len());
    disk.set_faults([]);
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    assert_eq!(db.stats().damaged_files, 0);
    keyspace.insert("still", "written").unwrap();
}

#[test]
fn files_that_a_merge_removes_meanwhile_are_no_damage() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let before = disk.image().files_with("table");
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let is_merged = Cell::new(false);
    let merge = |_| {
        if !is_merged.replace(true) {
            keyspace.compact_range::<&[u8]>(..).unwrap();
            db.wait_idle().unwrap();
        }
    };
    let report = db.scrub(&Scrub::default().with_progress(&merge)).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let after = disk.image().files_with("table");
    assert!(before.iter().all(|path| !after.contains(path)));
    assert_eq!(db.stats().damaged_files, 0);
}

#[test]
fn a_device_that_cannot_read_a_file_is_reported_and_poisons_nothing() {
    let disk = SimDisk::new();
    let options = all_kinds(&disk, &SteppedRuntime::new(1));
    make_all_kinds(&options);
    let (options, events) = damage_events(options);
    let db = Db::open(FOLDER, options).unwrap();
    disk.set_faults([]);
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    let reads = disk.operations(OperationKind::Read);
    for at in (0..reads).step_by(5) {
        let fault = Fault::io(OperationKind::Read, at);
        // One read that fails is tried again.
        disk.set_faults([fault]);
        assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
        disk.set_faults([fault.from_then_on()]);
        let report = db.scrub(&Scrub::default()).unwrap();
        disk.set_faults([]);
        assert!(report.left_out.is_empty(), "{report:?}");
        assert!(!report.damage.is_empty() || at + 5 >= reads);
        assert_eq!(events.try_iter().count(), report.damage.len());
    }
    assert!(db.stats().damaged_files > 3);
    db.keyspace("k")
        .unwrap()
        .insert("still", "written")
        .unwrap();
    db.close().unwrap();
}

#[test]
fn logs_that_go_away_while_they_are_opened_are_no_damage() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let hooked = HookedDisk::new(&disk);
    let options = long_logs(&disk, &runtime);
    make_long_logs(&options, 100 << 10);
    let (options, events) = damage_events(options);
    let db = Db::open(FOLDER, options.with_vfs(Arc::new(hooked.clone()))).unwrap();
    let before = disk.image().files_with("wal");
    let consumer = Mutex::new(Some((db.consumer("c").unwrap(), db.clone())));
    let hook = move |path: &Path| {
        if path.extension().is_some_and(|it| it == "wal")
            && let Some((consumer, db)) = consumer.lock().unwrap().take()
        {
            let newest = db.snapshot().sequence();
            consumer.acknowledge(newest).unwrap();
        }
    };
    *hooked.hook.lock().unwrap() = Some(Box::new(hook));
    let report = db.scrub(&Scrub::default()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let after = disk.image().files_with("wal");
    assert!(after.len() < before.len(), "{before:?} {after:?}");
    assert_eq!(events.try_iter().count(), 0);
}
