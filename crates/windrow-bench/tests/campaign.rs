//! The program `windrow-bench`: campaigns go on where they stopped, and say what is wrong with their files.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "the test looks at files")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_windrow-bench");
    Command::new(program).args(arguments).output().unwrap()
}

/// Repeats LS-E4, two short runs, with the campaign in `file`.
fn repeat(file: &Path) -> Output {
    let file = file.to_str().unwrap();
    bench(&[
        "paper",
        "LS-E4",
        "--scale",
        "0.004",
        "--json",
        "--campaign",
        file,
    ])
}

fn judged(output: &Output) -> serde_json::Value {
    assert!(output.status.code().unwrap() <= 1, "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_campaign_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let first = judged(&repeat(&file));
    assert_eq!(first["id"], "LS-E4");
    let whole = fs::read_to_string(&file).unwrap();
    assert_eq!(whole.lines().count(), 3);

    // Nothing is run again, and the same is found.
    assert_eq!(judged(&repeat(&file)), first);
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);

    // What was being written when it was broken off is run again, and nothing else.
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
fn a_file_that_is_no_campaign_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    judged(&repeat(&file));
    let whole = fs::read_to_string(&file).unwrap();
    let header = &whole[..=whole.find('\n').unwrap()];
    let program = serde_json::from_str::<serde_json::Value>(header).unwrap();
    let program = program["campaign"]["program"].as_str().unwrap();
    for (text, code, message) in [
        ("notes\n".to_owned(), 1, "not the file of a campaign"),
        ("notes".to_owned(), 1, "not the file of a campaign"),
        (
            header.replace("LS-E4", "LS-E1"),
            1,
            "of another command: windrow-bench paper LS-E1",
        ),
        (header.replace(program, "0"), 1, "another build"),
        (format!("{header}{{}}\n"), 3, "cannot be read"),
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
fn a_wrong_request_is_refused_before_anything_runs() {
    for (arguments, message) in [
        (&["paper", "AU-E99"][..], "there is no experiment AU-E99"),
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

/// The shapes do not hold at this scale; but each is judged, from figures that are there.
#[test]
fn every_experiment_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("papers.html");
    let page = page.to_str().unwrap();
    let output = bench(&[
        "paper", "all", "--scale", "0.001", "--json", "--output", page,
    ]);
    assert!(output.status.code().unwrap() <= 1, "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let experiments: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(experiments.len(), 27);
    let page = fs::read_to_string(page).unwrap();
    for experiment in experiments {
        let id = experiment["id"].as_str().unwrap();
        assert!(!experiment["checks"].as_array().unwrap().is_empty(), "{id}");
        assert!(
            !experiment["table"]["rows"].as_array().unwrap().is_empty(),
            "{id}"
        );
        for check in experiment["checks"].as_array().unwrap() {
            // A figure that could not be computed is told as none.
            let measured = check["measured"].as_str().unwrap();
            assert!(
                !measured.is_empty() && !measured.contains("none"),
                "{check}"
            );
        }
        assert!(page.contains(id), "{id}");
    }
}
