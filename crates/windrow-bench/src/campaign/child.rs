//! The process of a run: this program with `run`, in a folder of its own.
//!
//! 1. The process is over when [`reports_of`] returns, whatever the outcome.
//! 2. It does not outlive the campaign, even one that is killed: its standard input is a pipe whose other
//!    end the campaign holds, and [`end_with_parent`] ends it when that end is closed.
//! 3. Its folder goes with it, and is owned by the campaign.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use windrow::{Error, ErrorKind, Result};

use super::{Failure, Order};
use crate::engine::owned_folder::OwnedFolder;
use crate::{Report, exit_code};

/// What the names of folders begin with.
const FOLDER_PREFIX: &str = "windrow-campaign-";
/// Is there for the children of a campaign.
const VARIABLE: &str = "WINDROW_CAMPAIGN";

/// What has come of a run.
pub(super) type Outcome = std::result::Result<Vec<Report>, (Failure, Error)>;

/// The file of this program.
pub(super) fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::io("find", Path::new("this program"), error))
}

/// Runs the loads of `order` in a process of its own and in a new folder below `parent`.
///
/// # Errors
/// What keeps the process from beginning. What goes wrong in it is an outcome.
pub(super) fn run(order: &Order, parent: &Path, mut each: impl FnMut(&Report)) -> Result<Outcome> {
    let folder = OwnedFolder::new(FOLDER_PREFIX, parent)?; // 3
    let mut arguments: Vec<OsString> = vec!["run".into(), "--json".into(), "--db".into()];
    arguments.push(folder.path().into());
    arguments.extend(order.arguments.iter().map(OsString::from));
    reports_of(Command::new(program()?).args(arguments), order, &mut each)
}

/// Lets this process, where a campaign has started it, end with that campaign. // 2
///
/// # Errors
/// `Io` where no thread can be had.
#[expect(
    clippy::exit,
    reason = "what the process measures is for nobody, and no other thread is to go on"
)]
pub fn end_with_parent() -> Result<()> {
    if std::env::var_os(VARIABLE).is_none() {
        return Ok(());
    }
    let watch = || {
        // Nothing is ever sent: this ends when the other end is closed.
        let mut sent = [0];
        while io::stdin().read(&mut sent).is_ok_and(|length| length > 0) {}
        drop(writeln!(
            io::stderr(),
            "the campaign of this run has ended, and so does the run"
        ));
        std::process::exit(i32::from(exit_code(ErrorKind::Io)));
    };
    let watcher = thread::Builder::new()
        .name("parent".to_owned())
        .spawn(watch);
    let failed = |error| {
        Error::io(
            "start",
            Path::new("the thread that watches the campaign"),
            error,
        )
    };
    watcher.map(drop).map_err(failed)
}

/// A process that is over when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Where it has ended by itself, neither does anything.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Runs `command`, which writes a report a line. // 1
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
    // Kept to the end: waiting would close it.
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
                Err(error) => ("its report cannot be read", error.into()),
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

/// What a process says by its exit code; in words it has said it itself.
fn error_of(status: ExitStatus, label: &str) -> Error {
    let is = |kind| status.code() == Some(i32::from(exit_code(kind)));
    if is(ErrorKind::Corruption) {
        return Error::corruption(label, 0, "what was read is not what was written");
    }
    if is(ErrorKind::InvalidArgument) {
        return Error::invalid_argument(format!("the run {label} was refused as a wrong request"));
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
            "its report cannot be read, before the first load ended"
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
