//! Where a scrub goes on, and the notes that say so.

use super::*;

#[test]
fn an_interrupted_scrub_goes_on_where_it_was() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let total = table_bytes(&disk);
    let damaged = disk.edit(|image| {
        let path = image.files_with("table").into_iter().min().unwrap();
        image.flip(&path, 200_000, 1).unwrap();
        path
    });
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let image = Cell::new(None);
    let stop_at = total / 2;
    let look = |at: windrow::ScrubProgress| {
        if at.done >= stop_at {
            image.set(image.take().or_else(|| Some(disk.image())));
        }
    };
    let whole = db.scrub(&Scrub::default().with_progress(&look)).unwrap();
    assert_eq!(names(&whole), [name(&damaged)]);
    assert_eq!(whole.resumed_bytes, 0);
    let left = disk
        .image()
        .files()
        .into_iter()
        .map(|path| name(&path).to_owned());
    assert!(!left.into_iter().any(|it| it.starts_with("SCRUB.")));
    db.close().unwrap();

    // The process ends within the pass, or the power fails: nothing has synced the note.
    let image = image.take().unwrap();
    for policy in CrashPolicy::all(7) {
        let disk = SimDisk::from_image(image.crash(policy));
        let runtime = SteppedRuntime::new(2);
        runtime.set_unix_time(START);
        let options = on(options.clone(), &disk, &runtime);
        let db = Db::open(FOLDER, options).unwrap();
        let report = db.scrub(&Scrub::default()).unwrap();
        assert_eq!(names(&report), [name(&damaged)], "{policy:?}");
        let all = report.bytes + report.resumed_bytes;
        assert!((whole.bytes - STEP_BYTES..whole.bytes + STEP_BYTES).contains(&all));
        match policy {
            CrashPolicy::KeepAll => assert!(report.resumed_bytes >= stop_at),
            CrashPolicy::DropUnsynced => assert_eq!(report.resumed_bytes, 0),
            _ => {}
        }
        db.close().unwrap();
    }
}

#[test]
fn a_scrub_that_goes_on_checks_what_has_come_since_and_none_goes_on_after_a_day() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let image = Cell::new(None);
    let look = |_| image.set(image.take().or_else(|| Some(disk.image())));
    db.scrub(&Scrub::default().with_progress(&look)).unwrap();
    db.close().unwrap();
    let image = image.take().unwrap();
    let day = Duration::from_secs(24 * 3600);
    for (later, is_resumed) in [(day, true), (day + Duration::from_secs(1), false)] {
        let disk = SimDisk::from_image(image.clone());
        let options = on(options.clone(), &disk, &runtime);
        runtime.set_unix_time(START + later);
        let (db, keyspace) = open(options);
        keyspace.insert("since", vec![7; 1000]).unwrap();
        db.flush().unwrap();
        let new = disk.image().files_with("table").into_iter().max().unwrap();
        disk.edit(|image| image.flip(&new, 10, 1)).unwrap();
        let report = db.scrub(&Scrub::default()).unwrap();
        assert_eq!(names(&report), [name(&new)]);
        assert_eq!(report.resumed_bytes > 0, is_resumed);
    }
}

#[test]
fn only_an_open_for_writing_leaves_a_note_and_none_is_written_after_a_close() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let notes = |disk: &SimDisk| {
        let files = disk.image().files();
        let is_note = |path: &&PathBuf| name(path).starts_with("SCRUB");
        files.iter().filter(is_note).cloned().collect::<Vec<_>>()
    };
    let seen = Cell::new(0);
    let look = |_| seen.set(seen.get() + notes(&disk).len());
    let scrub = Scrub::default().with_progress(&look);
    let db = Db::open_read_only(FOLDER, options.clone()).unwrap();
    assert!(db.scrub(&scrub).unwrap().is_sound());
    db.close().unwrap();
    let reader = Db::open_secondary(FOLDER, options.clone()).unwrap();
    assert!(reader.db().scrub(&scrub).unwrap().is_sound());
    drop(reader);
    assert_eq!(seen.get(), 0);
    let db = Db::open(FOLDER, options.clone()).unwrap();
    assert!(db.scrub(&scrub).unwrap().is_sound());
    assert!(seen.get() > 0);
    assert!(notes(&disk).is_empty());
    db.close().unwrap();

    // Whoever hears of the damage closes the database, before the step is noted.
    let damaged = disk.image().files_with("table").into_iter().min().unwrap();
    disk.edit(|image| image.flip(&damaged, 10, 1)).unwrap();
    let opened = Arc::new(Mutex::new(None::<Db>));
    let to_close = Arc::clone(&opened);
    let (options, closed) = listen(options, move |event| match event {
        Event::DamageFound { .. } => {
            let db = to_close.lock().unwrap().take()?;
            Some(thread::spawn(|| db.close()).join().unwrap())
        }
        _ => None,
    });
    let db = Db::open(FOLDER, options).unwrap();
    *opened.lock().unwrap() = Some(db.clone());
    assert_eq!(kind(db.scrub(&Scrub::default())), ErrorKind::Closed);
    assert!(closed.recv().unwrap().is_ok());
    assert_eq!(notes(&disk), Vec::<PathBuf>::new());
}

#[test]
fn a_note_does_not_keep_a_database_from_being_created() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    disk.create_dir_all(Path::new(FOLDER)).unwrap();
    for note in ["SCRUB", "SCRUB.hand"] {
        drop(disk.create(&Path::new(FOLDER).join(note)).unwrap());
    }
    let db = Db::open(FOLDER, on(small(), &disk, &runtime)).unwrap();
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
}

/// The folder after the first step of a scrub over long logs that ends within a file.
fn interrupted(options: &Options, disk: &SimDisk) -> windrow_sim::Image {
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let image = Cell::new(None);
    let look = |at: windrow::ScrubProgress| {
        if at.done > 3 * STEP_BYTES {
            image.set(image.take().or_else(|| Some(disk.image())));
        }
    };
    db.scrub(&Scrub::default().with_progress(&look)).unwrap();
    db.close().unwrap();
    image.take().unwrap()
}

#[test]
fn a_scrub_goes_on_within_a_log_and_a_value_log() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = long_logs(&disk, &runtime);
    make_long_logs(&options, 100 << 10);
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let whole = db.scrub(&Scrub::default()).unwrap().bytes;
    db.close().unwrap();
    let (_, images) = steps(&options, &disk);
    assert!(images.len() > 10);
    let [within @ .., _] = &*images else { panic!() };
    for image in within {
        let disk = SimDisk::from_image(image.clone());
        let db = Db::open(FOLDER, on(options.clone(), &disk, &runtime)).unwrap();
        let report = db.scrub(&Scrub::default()).unwrap();
        assert!(report.is_sound() && report.resumed_bytes > 0, "{report:?}");
        assert_eq!(report.bytes + report.resumed_bytes, whole);
    }
}

#[test]
fn a_note_of_another_database_is_removed_or_does_no_harm() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = long_logs(&disk, &runtime);
    make_long_logs(&options, 100 << 10);
    let path = Path::new(FOLDER).join("SCRUB.hand");
    let note = interrupted(&options, &disk).read(&path).unwrap();

    // The records of these are elsewhere.
    let other = SimDisk::new();
    let options = on(options, &other, &runtime);
    make_long_logs(&options, 90 << 10);
    other.edit(|image| image.write(&path, &note)).unwrap();
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let report = db.scrub(&Scrub::default()).unwrap();
    assert!(report.is_sound() && report.resumed_bytes > 0, "{report:?}");
    db.close().unwrap();

    let new = SimDisk::new();
    new.create_dir_all(Path::new(FOLDER)).unwrap();
    drop(new.create(&path).unwrap());
    new.edit(|image| image.write(&path, &note)).unwrap();
    let db = Db::open(FOLDER, on(options, &new, &runtime)).unwrap();
    assert_eq!(new.image().read(&path).ok(), None);
    db.close().unwrap();
}

/// The folders after each step of a scrub, with a note.
fn steps(options: &Options, disk: &SimDisk) -> (ScrubReport, Vec<windrow_sim::Image>) {
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let images = Mutex::new(Vec::new());
    let look = |_| images.lock().unwrap().push(disk.image());
    let report = db.scrub(&Scrub::default().with_progress(&look)).unwrap();
    db.close().unwrap();
    (report, images.into_inner().unwrap())
}

#[test]
fn damage_is_in_the_last_report_wherever_the_scrubs_before_it_were_interrupted() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let mut options = long_logs(&disk, &runtime);
    options.keyspace.large_from = u64::MAX;
    let (db, keyspace) = open(options.clone());
    for number in 0..50_u8 {
        keyspace.insert([number], vec![0xE7; 100 << 10]).unwrap();
    }
    db.flush().unwrap();
    drop(keyspace);
    db.close().unwrap();
    // All values are checked with one table.
    assert_eq!(count(&disk, "table"), 1);
    let damaged = disk.edit(|image| {
        let path = image.files_with("values").into_iter().min().unwrap();
        image.flip(&path, 1000, 1).unwrap();
        name(&path).to_owned()
    });
    let (_, once) = steps(&options, &disk);
    assert!(once.len() > 3);
    for image in once {
        let disk = SimDisk::from_image(image);
        let options = on(options.clone(), &disk, &runtime);
        let (report, twice) = steps(&options, &disk);
        assert_eq!(names(&report), [&*damaged]);
        for image in twice {
            let disk = SimDisk::from_image(image);
            let options = on(options.clone(), &disk, &runtime);
            assert_eq!(names(&steps(&options, &disk).0), [&*damaged]);
        }
    }
}
