//! The program `windrow-bench`: campaigns resume, record failures, and name faults of their files.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "the test looks at files")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn bench(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_windrow-bench");
    Command::new(program).args(arguments).output().unwrap()
}

/// LS-E4, two short runs, with the campaign in the file that follows.
const REPEAT: [&str; 6] = ["paper", "LS-E4", "--scale", "0.004", "--json", "--campaign"];

/// Runs LS-E4 with the campaign in `file`.
fn repeat(file: &Path) -> Output {
    bench(&[&REPEAT[..], &[file.to_str().unwrap()]].concat())
}

fn judged(output: &Output) -> serde_json::Value {
    assert!(output.status.code().unwrap() <= 1, "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_campaign_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let first = judged(&repeat(&file));
    assert_eq!(first["id"], "LS-E4");
    let whole = fs::read_to_string(&file).unwrap();
    assert_eq!(whole.lines().count(), 3);

    // No run is repeated, and the findings are the same.
    assert_eq!(judged(&repeat(&file)), first);
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);

    // Only the run of the incomplete line is repeated.
    let second_line = whole.find('\n').unwrap() + 1;
    let last_line = second_line + whole[second_line..].find('\n').unwrap() + 1;
    for cut in [last_line, last_line + 20, whole.len() - 1] {
        fs::write(&file, &whole[..cut]).unwrap();
        judged(&repeat(&file));
        let again = fs::read_to_string(&file).unwrap();
        assert_eq!(again[..last_line], whole[..last_line]);
        assert_eq!(again.lines().count(), 3);
    }
    fs::write(&file, &whole[..second_line - 5]).unwrap();
    judged(&repeat(&file));
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
}

#[test]
fn other_files_stay_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    judged(&repeat(&file));
    let whole = fs::read_to_string(&file).unwrap();
    let header = &whole[..=whole.find('\n').unwrap()];
    let fields = serde_json::from_str::<serde_json::Value>(header).unwrap();
    let fields = &fields["campaign"];
    let program = fields["program"].as_str().unwrap();
    let place = fields["folder"].as_str().unwrap();
    assert_eq!(fields["version"], env!("CARGO_PKG_VERSION"));
    let cores = |cores: u64| format!("\"cores\":{cores},");
    let own_cores = fields["machine"]["cores"].as_u64().unwrap();
    for (text, code, message) in [
        ("notes\n".to_owned(), 1, "not the file of a campaign"),
        ("notes".to_owned(), 1, "not the file of a campaign"),
        (
            header.replace("LS-E4", "LS-E1"),
            1,
            "with another command: windrow-bench paper LS-E1",
        ),
        (header.replace(program, "0"), 1, "another build"),
        (
            header.replace(&cores(own_cores), &cores(own_cores + 1)),
            1,
            "began on another machine",
        ),
        (header.replace(place, "/elsewhere"), 1, "were in /elsewhere"),
        (format!("{header}{{}}\n"), 3, "is invalid"),
    ] {
        fs::write(&file, &text).unwrap();
        let output = repeat(&file);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(message), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_campaign_resumes_only_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let first = judged(&repeat(&file));
    let databases = folder.path().to_str().unwrap();
    let elsewhere = [file.to_str().unwrap(), "--folder", databases];
    let repeat_elsewhere = || bench(&[&REPEAT[..], &elsewhere].concat());
    // A complete campaign is judged for any folder.
    assert_eq!(judged(&repeat_elsewhere()), first);
    let whole = fs::read_to_string(&file).unwrap();
    let last_line = whole.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&file, &whole[..last_line]).unwrap();
    let output = repeat_elsewhere();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(", not in"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), whole[..last_line]);
}

#[test]
fn a_campaign_resumes_only_with_the_same_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (campaign, options) = (path("campaign"), path("tree.options"));
    fs::write(&options, "size_ratio = 4\n").unwrap();
    let repeat = || {
        let loads = ["campaign", &campaign, "--rounds", "2", "fillseq"];
        bench(
            &[
                &loads[..],
                &["--num", "100", "--num", "200", "--options", &options],
            ]
            .concat(),
        )
    };
    assert!(repeat().status.success());
    let whole = fs::read_to_string(&campaign).unwrap();
    assert_eq!(whole.lines().count(), 3);
    let last_line = whole.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&campaign, &whole[..last_line]).unwrap();
    fs::write(&options, "size_ratio = 5\n").unwrap();
    let output = repeat();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("has changed since its start"), "{said}");
    assert_eq!(fs::read_to_string(&campaign).unwrap(), whole[..last_line]);
    fs::write(&options, "size_ratio = 4\n").unwrap();
    assert!(repeat().status.success());
}

/// [`repeat`] with a limit on the size of files, in units of 512 bytes.
#[cfg(unix)]
fn repeat_within(units: u32, file: &Path) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {units}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_windrow-bench")])
        .args(REPEAT)
        .arg(file)
        .output()
        .unwrap()
}

#[cfg(unix)]
#[test]
fn failures_are_recorded_and_retried() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let lines = || -> Vec<serde_json::Value> {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    // Enough for the file of the campaign, but not for a log.
    for tries in 1..=2 {
        let output = repeat_within(32, &file);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let lines = lines();
        assert_eq!(lines.len(), 1 + tries);
        let failure = &lines[tries];
        assert_eq!(failure["exit_code"], 2);
        let failed = failure["failed"].as_str().unwrap();
        assert!(failed.contains("before the first load ended"), "{failed}");
    }
    judged(&repeat(&file));
    let lines = lines();
    let failed: Vec<bool> = lines
        .iter()
        .map(|line| line.get("failed").is_some())
        .collect();
    assert_eq!(failed, [false, true, true, false, false]);
    assert_eq!(lines[3]["label"], lines[1]["label"]);
    // A file with failures stays readable and has a page.
    judged(&repeat(&file));
    let page = folder.path().join("page.html");
    let words = [
        "report",
        file.to_str().unwrap(),
        "--output",
        page.to_str().unwrap(),
    ];
    assert_eq!(bench(&words).status.code(), Some(0));
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("before the first load ended; a later try passed"));
    assert!(page.contains("experiment-ls-e4"));
}

#[test]
fn a_campaign_of_experiments_is_judged_for_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, page, again) = (path("campaign"), path("page.html"), path("again.html"));
    let output = bench(&[&REPEAT[..], &[&file, "--output", &page]].concat());
    judged(&output);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("[2 of 2] windrow-bench run fillseq"),
        "{said}"
    );
    let output = bench(&["report", &file, "--output", &again, "--json"]);
    let written: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(written["file"], again.as_str());
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(fs::read_to_string(&again).unwrap(), page);
    assert!(page.contains("experiment-ls-e4"));

    // Ids do not depend on case.
    let typed = ["paper", "ls-e4", "--scale", "0.004", "--json", "--campaign"];
    judged(&bench(&[&typed[..], &[&file]].concat()));

    // An experiment without all runs is not judged.
    let whole = fs::read_to_string(&file).unwrap();
    let last_line = whole.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&file, &whole[..last_line]).unwrap();
    let output = bench(&["report", &file, "--output", &again]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = fs::read_to_string(&again).unwrap();
    assert!(page.contains("nothing to show yet"));
}

#[test]
fn loads_make_a_campaign_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let file = file.to_str().unwrap();
    let loads = ["fillrandom,readrandom", "--num", "500"];
    let run = |options: &[&str], behind: &[&str]| {
        let first = ["campaign", file, "--rounds", "2"];
        bench(&[&first[..], options, &loads, behind].concat())
    };
    let refused = run(&[], &["--json"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let output = run(&["--json"], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["settings"]["windrow"]["durability"], "Buffered");
    let loads: Vec<_> = lines[1..].iter().map(|line| &line["load"]).collect();
    assert_eq!(loads, ["fillrandom", "readrandom"]);
    assert_eq!(lines[1]["engines"][0]["rounds"], 2);

    // No run is repeated, and the findings are the same.
    let whole = fs::read_to_string(file).unwrap();
    assert_eq!(whole.lines().count(), 3);
    let again = run(&["--json"], &[]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), printed);
    assert_eq!(fs::read_to_string(file).unwrap(), whole);
    let table = String::from_utf8(run(&[], &[]).stdout).unwrap();
    assert!(table.lines().any(|line| line.starts_with("fillrandom ")));

    let page = folder.path().join("page.html");
    let output = bench(&["report", file, "--output", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(fs::read_to_string(&page).unwrap().contains("fillrandom"));
}

#[test]
fn a_page_never_overwrites_its_campaign() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let page = folder.path().join(".").join("campaign");
    let refused = |arguments: &[&str]| {
        let output = bench(&[arguments, &["--output", page.to_str().unwrap()]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("overwritten"), "{said}");
    };
    let repeat_there = [&REPEAT[..], &[file.to_str().unwrap()]].concat();
    refused(&repeat_there);
    assert!(!file.exists());
    judged(&repeat(&file));
    let whole = fs::read_to_string(&file).unwrap();
    refused(&repeat_there);
    refused(&["report", file.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
}

#[cfg(unix)]
#[test]
fn a_failed_append_leaves_no_partial_line() {
    const UNITS: u32 = 128 << 10;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    judged(&repeat(&file));
    let whole = fs::read_to_string(&file).unwrap();
    let header = whole.lines().next().unwrap();
    // The padding leaves space for a part of the next line and for all other files.
    let padding = " ".repeat(UNITS as usize * 512 - 101 - header.len());
    let long = format!("{header}{padding}\n");
    fs::write(&file, &long).unwrap();
    let output = repeat_within(UNITS, &file);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("could not write to"), "{said}");
    assert!(fs::read_to_string(&file).unwrap() == long);
    judged(&repeat(&file));
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
}

#[test]
fn a_run_ends_with_its_campaign() {
    // Only the end of its input ends this run.
    let mut run = Command::new(env!("CARGO_BIN_EXE_windrow-bench"));
    let words = ["run", "xxh3", "--ops", "1000000000000000"];
    run.args(words).env("WINDROW_CAMPAIGN", "1");
    let mut run = run.stdin(Stdio::piped()).spawn().unwrap();
    drop(run.stdin.take());
    assert_eq!(run.wait().unwrap().code(), Some(2));
}

#[test]
fn a_killed_campaign_leaves_no_run_and_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let databases = folder.path().join("databases");
    fs::create_dir(&databases).unwrap();
    let entries = || -> Vec<PathBuf> {
        let entries = fs::read_dir(&databases).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let databases = databases.to_str().unwrap();
    // Its run takes hours.
    let mut campaign = Command::new(env!("CARGO_BIN_EXE_windrow-bench"))
        .args(["paper", "LS-E4", "--scale", "900", "--folder", databases])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !entries()
        .iter()
        .any(|folder| folder.join("windrow").is_dir())
    {
        assert!(campaign.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(10));
    }
    campaign.kill().unwrap();
    campaign.wait().unwrap();
    // The run has the same standard error, which closes when the last process ends.
    let mut said = String::new();
    let mut stderr = campaign.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("has ended"), "{said}");
    assert_eq!(entries().len(), 1);
    let file = folder.path().join("campaign");
    let words = [file.to_str().unwrap(), "--folder", databases];
    judged(&bench(&[&REPEAT[..], &words].concat()));
    assert!(entries().is_empty());
}

#[test]
fn invalid_arguments_are_refused_before_anything_runs() {
    for (arguments, message) in [
        (&["paper", "AU-E99"][..], "no experiment AU-E99 exists"),
        (&["paper", "all", "--scale", "0"], "scale"),
        (&["paper", "all", "--scale", "NaN"], "scale"),
        (&["paper"], "required"),
        (&["run", "fillsec"], "fillseq"),
        (&["run", "readrandom"], "needs data"),
    ] {
        let output = bench(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(message), "{said}");
    }
    assert_eq!(bench(&["--help"]).status.code(), Some(0));
}

/// Runs the experiments of one paper. The shapes do not hold at this scale, but each is judged from existing figures.
fn check_judged(paper: &str, count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("papers.html");
    let page = page.to_str().unwrap();
    let output = bench(&[
        "paper", paper, "--scale", "0.001", "--json", "--output", page,
    ]);
    assert!(output.status.code().unwrap() <= 1, "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let experiments: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(experiments.len(), count);
    let page = fs::read_to_string(page).unwrap();
    for experiment in experiments {
        let id = experiment["id"].as_str().unwrap();
        assert!(!experiment["checks"].as_array().unwrap().is_empty(), "{id}");
        assert!(
            !experiment["table"]["rows"].as_array().unwrap().is_empty(),
            "{id}"
        );
        for check in experiment["checks"].as_array().unwrap() {
            // The text of a missing figure is none.
            let measured = check["measured"].as_str().unwrap();
            assert!(
                !measured.is_empty() && !measured.contains("none"),
                "{check}"
            );
        }
        assert!(page.contains(id), "{id}");
    }
}

#[test]
fn every_experiment_of_autumn_is_judged() {
    check_judged("AU", 10);
}

#[test]
fn every_experiment_of_parallax_is_judged() {
    check_judged("PX", 10);
}

#[test]
fn every_experiment_of_lsma_is_judged() {
    check_judged("LS", 7);
}
