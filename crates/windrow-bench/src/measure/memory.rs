//! The limit on the memory of the machine: a child process, this program with the command `hold-memory`, locks all
//! memory but a rest.
//!
//! 1. The child takes memory in pieces until the kernel counts only the rest as available, page cache included. The
//!    kernel frees pages of the cache for it.
//! 2. The child is the first process that the kernel ends if memory runs out. A run without its child has more memory
//!    than it asked for, so it fails.
//! 3. The child ends with its parent, also a killed one.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use clap::Args;
use windrow::{Error, ErrorKind, Result};

use crate::measure::child_process::{Ended, end_with_input, program};
use crate::measure::process::available_memory_bytes;
use crate::report::output::print;

/// The command of the child.
const COMMAND: &str = "hold-memory";
/// The line of a child that holds the memory.
const HELD: &str = "held";
/// Less memory may not be enough for the programs that run beside the load.
const LEFT_BYTES_MIN: u64 = 64 << 20;
/// The most memory that the child locks at once.
const PIECE_BYTES: u64 = 64 << 20;
/// The precision of the rest.
const PRECISION_BYTES: u64 = 1 << 20;

/// Arguments of `hold-memory`.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// Bytes that other processes and the page cache keep
    #[arg(value_name = "BYTES")]
    left: u64,
}

/// Checks that the machine can leave `left` bytes.
///
/// # Errors
/// `InvalidArgument` if it cannot.
pub(crate) fn check_left(left: u64) -> Result<()> {
    if left < LEFT_BYTES_MIN {
        return Err(Error::invalid_argument(format!(
            "--memory {} is too small, because other programs need memory, too; the minimum is {}",
            mebibytes(left),
            mebibytes(LEFT_BYTES_MIN)
        )));
    }
    let available = available_memory_bytes().ok_or_else(|| {
        Error::invalid_argument("--memory needs Linux, which reports the available memory")
    })?;
    if available < left {
        return Err(Error::invalid_argument(format!(
            "--memory {} is more than the {} that this machine has available",
            mebibytes(left),
            mebibytes(available)
        )));
    }
    Ok(())
}

/// All memory of the machine but a rest, locked until this value drops.
#[derive(Debug)]
pub(crate) struct HeldMemory(Ended);

impl HeldMemory {
    /// Leaves `left` bytes.
    ///
    /// # Errors
    /// `InvalidArgument` if the system refuses it; `Io` if no process can start.
    pub(crate) fn leave(left: u64) -> Result<Self> {
        check_left(left)?;
        let program = program()?;
        let failed = |error| Error::io("start", &program, error);
        let mut command = Command::new(&program);
        command
            .args([COMMAND, &left.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = Ended(command.spawn().map_err(failed)?);
        let mut line = String::new();
        if let Some(stdout) = child.0.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(failed)?;
        }
        match line.trim_end() {
            HELD => Ok(Self(child)),
            "" => Err(lost()),
            refusal => Err(Error::invalid_argument(refusal)),
        }
    }

    /// Checks that the memory is still locked. // 2
    ///
    /// # Errors
    /// `Io` if it is not.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.0.0.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(lost()),
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn lost() -> Error {
    let message = "the process that held the memory of --memory was ended: the machine had too little memory for \
                   the load beside other programs";
    Error::new(ErrorKind::Io, message)
}

/// Holds all memory but a rest until standard input ends. Writes one line when it holds it, or why it cannot.
///
/// # Errors
/// `Io` if standard output is closed or no thread can start.
pub fn hold_memory(args: &HoldArgs) -> Result<()> {
    // Raising it needs no privilege. Without it, the kernel picks the largest process, which is this one. // 2
    drop(fs::write("/proc/self/oom_score_adj", "1000"));
    end_with_input(|| 0)?; // 3
    let held = hold(args.left);
    print(held.as_ref().map_or_else(String::as_str, |_| HELD))?;
    while held.is_ok() {
        thread::park();
    }
    Ok(())
}

/// Locks memory until `left` bytes are available. // 1
fn hold(left: u64) -> std::result::Result<Vec<Vec<u8>>, String> {
    lock_all()?;
    let mut pieces = Vec::new();
    loop {
        let available = available_memory_bytes().unwrap_or(0);
        let piece = available.saturating_sub(left).min(PIECE_BYTES);
        if piece < PRECISION_BYTES {
            return Ok(pieces);
        }
        let piece = usize::try_from(piece).unwrap_or(0);
        let mut locked = Vec::new();
        locked
            .try_reserve_exact(piece)
            .map_err(|error| refusal(&error))?;
        locked.resize(piece, 1);
        pieces.push(locked);
    }
}

/// Locks the memory of this process, also what it allocates later.
#[cfg(target_os = "linux")]
fn lock_all() -> std::result::Result<(), String> {
    use rustix::mm::{MlockAllFlags, mlockall};
    // The kernel cannot free dirty pages at once.
    rustix::fs::sync();
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|error| refusal(&error))
}

#[cfg(not(target_os = "linux"))]
fn lock_all() -> std::result::Result<(), String> {
    Err(refusal(&"not on this system"))
}

fn refusal(error: &dyn std::fmt::Display) -> String {
    format!(
        "--memory locks memory, which the system refuses ({error}): run as root, or raise the limit of locked memory (ulimit -l)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // 2
    #[test]
    #[cfg(unix)]
    fn a_run_without_its_child_fails() {
        let mut command = Command::new("sleep");
        let child = command.arg("600").spawn().unwrap();
        let mut held = HeldMemory(Ended(child));
        held.check().unwrap();
        held.0.0.kill().unwrap();
        held.0.0.wait().unwrap();
        let lost = held.check().unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Io);
        assert!(lost.to_string().contains("--memory"), "{lost}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_machine_cannot_leave_is_refused() {
        let refused = |left| check_left(left).unwrap_err();
        for (left, says) in [
            (0, "--memory 0 MiB is too small"),
            (LEFT_BYTES_MIN - 1, "the minimum is 64 MiB"),
            (1 << 60, "MiB that this machine has available"),
        ] {
            let error = refused(left);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
