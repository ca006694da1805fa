//! `dump`: the content of one file of a database, for people who want to see the bytes' meaning.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::{Result, inspect};

use crate::files;
use crate::outcome::Outcome;
use crate::output::Output;

/// Arguments of `dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file may belong to a database that is open elsewhere: it is only read.

Examples:
  windrow dump shop.db/CURRENT
  windrow dump shop.db/000004.table")]
pub(crate) struct DumpArgs {
    /// A table, a log, a manifest or CURRENT
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &DumpArgs, output: &mut Output) -> Result<Outcome> {
    let file = fs::metadata(&args.file);
    file.map_err(|error| files::failed("read", &args.file, error))?;
    let mut lines = Lines {
        output,
        line: Vec::new(),
    };
    inspect::dump(&args.file, &mut lines)?;
    Ok(Outcome::Done)
}

/// Passes text on, line by line; under `--json` each line becomes an object.
struct Lines<'a> {
    output: &'a mut Output,
    line: Vec<u8>,
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.line).into_owned();
                self.line.clear();
                self.output
                    .line(&line)
                    .and_then(|()| self.output.object(&json!({ "line": line })))
                    .map_err(io::Error::other)?;
            } else {
                self.line.push(byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
