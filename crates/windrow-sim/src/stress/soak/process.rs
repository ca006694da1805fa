//! A running process of the soak, as its parent sees it.
//!
//! Concurrency: one thread has the process; another one reads its reports until it is gone. A dropped process is killed.

use super::CHILD;
use super::child::{Child, Report, Role};
use clap::ValueEnum;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{self, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

#[derive(Debug)]
pub(super) struct Process {
    child: process::Child,
    /// `None` once it was asked to end.
    input: Option<ChildStdin>,
    reports: Receiver<Report>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    pub(super) fn start(executable: &Path, child: &Child) -> io::Result<Self> {
        let role = child.role.to_possible_value();
        let mut command = Command::new(executable);
        command
            .arg(CHILD)
            .arg(role.expect("every role can be named").get_name())
            .arg(&child.folder)
            .args([child.seed, child.life, child.interval].map(|number| number.to_string()))
            .args(child.quiet.then_some("--quiet"));
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take();
        let output = process.stdout.take().expect("the child has a pipe");
        let (sender, reports) = mpsc::channel();
        let read = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // A kill cuts the last line.
                let report = Report::parse(&line);
                if report.is_some_and(|report| sender.send(report).is_err()) {
                    return;
                }
            }
        };
        let reader = Some(thread::Builder::new().spawn(read)?);
        Ok(Self {
            child: process,
            input,
            reports,
            reader,
        })
    }

    /// Fills or empties its disk.
    pub(super) fn set_full(&mut self, is_full: bool) -> io::Result<()> {
        let byte = if is_full { b'f' } else { b'e' };
        match &mut self.input {
            Some(input) => input.write_all(&[byte]),
            None => Ok(()),
        }
    }

    /// What it has reported since the last call.
    pub(super) fn reports(&mut self) -> Vec<Report> {
        self.reports.try_iter().collect()
    }

    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    pub(super) fn ask_to_end(&mut self) {
        self.input = None;
    }

    /// Waits for its end, which must be a success.
    pub(super) fn finish(&mut self, role: Role) -> io::Result<()> {
        self.ask_to_end();
        let status = self.child.wait()?;
        self.join();
        assert!(status.success(), "the {} has failed: {status}", role.name());
        Ok(())
    }

    /// Kills it, which must not have ended by itself.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        let status = self.child.wait()?;
        self.join();
        assert!(
            status.code().is_none(),
            "a process has ended without a kill: {status}"
        );
        Ok(())
    }

    fn join(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After a failure of another one; nobody asks how it ends.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
