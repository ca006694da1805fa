//! The command line of Windrow.
//!
//! Exit codes: 0 done, 1 not found or a mistake of the caller, 2 the environment failed (disk,
//! permissions, a lock), 3 stored data is damaged.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command line reads real files and the real clock, beside the engine"
)]

mod amounts;
mod arguments;
mod commands;
mod demo;
mod files;
mod outcome;
mod output;
mod picture;
mod progress;
mod prometheus;
mod store;
mod text;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::outcome::Outcome;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return outcome::of_usage(&error),
    };
    let mut output = Output::new(arguments.json);
    let result = commands::run(arguments.command, &mut output);
    let result = result.and_then(|outcome| output.flush().map(|()| outcome));
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(_) if output.reader_is_gone() => Outcome::Done.exit_code(),
        Err(error) => {
            output.error(&error);
            outcome::of_error(&error).exit_code()
        }
    }
}
