//! The child process of a run: this program with the command `run`, in its own folder.
//!
//! 1. The process has ended when [`reports_of`] returns, for every outcome.
//! 2. The process does not outlive the campaign, even a killed one. Its standard input is a pipe of the campaign,
//!    and [`end_with_parent`] ends the process when the other end closes.
//! 3. The campaign owns the folder of the process and removes it after the run.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use windrow::{Error, ErrorKind, Result};

use super::{Failure, Order};
use crate::engine::owned_folder::OwnedFolder;
use crate::measure::child_process::{Ended, end_with_input, program};
use crate::{Report, exit_code};

/// The prefix of folder names.
const FOLDER_PREFIX: &str = "windrow-campaign-";
/// The environment variable that marks the children of a campaign.
const VARIABLE: &str = "WINDROW_CAMPAIGN";

/// The outcome of a run.
pub(super) type Outcome = std::result::Result<Vec<Report>, (Failure, Error)>;

/// Runs the loads of `order` in a child process and in a new folder below `parent`.
///
/// # Errors
/// An error of the start of the process. A failure in the process is an outcome.
pub(super) fn run(order: &Order, parent: &Path, mut each: impl FnMut(&Report)) -> Result<Outcome> {
    let folder = OwnedFolder::new(FOLDER_PREFIX, parent)?; // 3
    let mut arguments: Vec<OsString> = vec!["run".into(), "--json".into(), "--db".into()];
    arguments.push(folder.path().into());
    arguments.extend(order.arguments.iter().map(OsString::from));
    reports_of(Command::new(program()?).args(arguments), order, &mut each)
}

/// Ends this process together with the campaign that started it, if any. // 2
///
/// # Errors
/// `Io` if no thread can start.
pub fn end_with_parent() -> Result<()> {
    if std::env::var_os(VARIABLE).is_none() {
        return Ok(());
    }
    end_with_input(|| {
        drop(writeln!(
            io::stderr(),
            "the campaign of this run has ended, so the run ends, too"
        ));
        exit_code(ErrorKind::Io)
    })
}

/// Runs `command`, which writes one report per line. // 1
fn reports_of(
    command: &mut Command,
    order: &Order,
    each: &mut dyn FnMut(&Report),
) -> Result<Outcome> {
    let failed = |error| Error::io("run", Path::new(&order.label), error);
    command
        .env(VARIABLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = Ended(command.spawn().map_err(failed)?);
    // Stays open to the end: `wait` would close it.
    let _input = child.0.stdin.take();
    let mut reports: Vec<Report> = Vec::new();
    if let Some(stdout) = child.0.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(failed)?;
            let (what, error) = match serde_json::from_str::<Report>(&line) {
                Ok(report) if report.engine == order.engine => {
                    each(&report);
                    reports.push(report);
                    continue;
                }
                Ok(report) => {
                    let what = "it reports on another engine";
                    (what, io::Error::other(format!("{what}, {}", report.engine)))
                }
                Err(error) => ("its report is invalid", error.into()),
            };
            let failure = order.failure(what, reports.last(), None);
            return Ok(Err((failure, failed(error))));
        }
    }
    let status = child.0.wait().map_err(failed)?;
    if status.success() {
        return Ok(Ok(reports));
    }
    let failure = order.failure(&status.to_string(), reports.last(), status.code());
    Ok(Err((failure, error_of(status, &order.label))))
}

/// The error of an exit code. The process has printed its message itself.
fn error_of(status: ExitStatus, label: &str) -> Error {
    let is = |kind| status.code() == Some(i32::from(exit_code(kind)));
    if is(ErrorKind::Corruption) {
        return Error::corruption(label, 0, "a read returned other data than was written");
    }
    if is(ErrorKind::InvalidArgument) {
        return Error::invalid_argument(format!("the run {label} refused its arguments"));
    }
    let error = io::Error::other(status.to_string());
    Error::io("run", Path::new(label), error)
}

#[cfg(all(test, target_os = "linux"))]
mod tests_of_processes {
    use std::fs;

    use super::*;
    use crate::measure::progress::Unseen;
    use crate::{BenchArgs, Load, WindrowEngine, run_loads};

    fn order() -> Order {
        Order {
            label: "a run".to_owned(),
            engine: "windrow".to_owned(),
            round: 1,
            group: "a group".to_owned(),
            program: "program".to_owned(),
            arguments: vec!["fillseq".to_owned()],
        }
    }

    #[test]
    fn a_child_whose_line_cannot_be_read_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("process");
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\"; echo nonsense; exec sleep 600"])
            .arg(&note);
        let outcome = reports_of(&mut command, &order(), &mut |_| {}).unwrap();
        let (failure, _) = outcome.unwrap_err();
        assert_eq!(
            failure.failed,
            "its report is invalid, before the first load ended"
        );
        let process = fs::read_to_string(&note).unwrap();
        let entry = Path::new("/proc").join(process.trim());
        assert!(!entry.exists(), "{}", entry.display());
    }

    #[test]
    fn a_report_on_another_engine_is_a_failure() {
        let args = BenchArgs {
            num: 10,
            ..BenchArgs::new(vec![Load::FillSeq])
        };
        let mut line = String::new();
        let open = |folder: &Path| WindrowEngine::open(folder, &args);
        run_loads(&args, open, &Unseen, |report| {
            line = serde_json::to_string(report).unwrap();
            Ok(())
        })
        .unwrap();
        let of = |engine: &str| {
            let order = Order {
                engine: engine.to_owned(),
                ..order()
            };
            reports_of(Command::new("echo").arg(&line), &order, &mut |_| {})
        };
        assert_eq!(of("windrow").unwrap().unwrap().len(), 1);
        let (failure, error) = of("rocksdb").unwrap().unwrap_err();
        assert!(failure.failed.starts_with("it reports on another engine"));
        assert!(error.to_string().contains("windrow"), "{error}");
    }

    #[test]
    fn a_child_that_fails_is_an_outcome_that_names_the_run() {
        for (code, kind) in [
            (1, ErrorKind::InvalidArgument),
            (2, ErrorKind::Io),
            (3, ErrorKind::Corruption),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("exit {code}")]);
            let outcome = reports_of(&mut command, &order(), &mut |_| {}).unwrap();
            let (failure, error) = outcome.unwrap_err();
            assert!(error.to_string().contains("a run"), "{error}");
            assert_eq!(error.kind(), kind);
            assert_eq!(failure.exit_code, Some(code));
            assert_eq!((failure.label.as_str(), failure.round), ("a run", 1));
            assert!(failure.failed.contains("exit status"), "{}", failure.failed);
        }
    }

    #[test]
    fn a_child_that_is_killed_has_no_exit_code() {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -9 $$"]);
        let outcome = reports_of(&mut command, &order(), &mut |_| {}).unwrap();
        let (failure, error) = outcome.unwrap_err();
        assert_eq!((failure.exit_code, error.kind()), (None, ErrorKind::Io));
        assert!(failure.failed.contains("signal"), "{}", failure.failed);
    }

    // 2
    #[test]
    fn the_input_of_a_child_is_open_while_it_runs() {
        let mut command = Command::new("sh");
        let script = "test -n \"$WINDROW_CAMPAIGN\" && test -p /dev/stdin";
        command.args(["-c", script]);
        reports_of(&mut command, &order(), &mut |_| {})
            .unwrap()
            .unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let mut command = Command::new("/nowhere/program");
        reports_of(&mut command, &order(), &mut |_| {}).unwrap_err();
    }
}
