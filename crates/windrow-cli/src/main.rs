//! The command line of Windrow.
//!
//! Exit codes: 0 done, 1 not found or a mistake of the caller, 2 the environment failed (disk,
//! permissions, a lock), 3 stored data is damaged, 130 interrupted by Ctrl-C.
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
mod range;
mod store;
mod tables;
mod text;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use windrow::Error;

use crate::arguments::{Arguments, Command};
use crate::outcome::Outcome;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let mut output = Output::new(arguments.json);
    let result = match (&arguments.key_file, &arguments.command) {
        (Some(_), Command::Demo(_) | Command::Bench(_)) => Err(Error::invalid_argument(
            "this command does not encrypt: it takes no file with keys",
        )),
        (Some(keys), _) => store::use_keys(keys, &output),
        (None, _) => Ok(()),
    };
    let result = result.and_then(|()| commands::run(arguments.command, &mut output));
    let result = result.and_then(|outcome| output.flush().map(|()| outcome));
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(_) if output.reader_is_gone() => Outcome::Done.exit_code(),
        Err(error) => {
            // What the command has found so far comes before the error.
            drop(output.flush());
            output.show_error(&error);
            outcome::of_error(&error).exit_code()
        }
    }
}

/// Prints what clap has to say: help and version are answers, the rest is a mistake of the caller.
fn usage(error: &clap::Error) -> ExitCode {
    let is_answer = error.exit_code() == 0;
    // The arguments were not parsed, so they are searched for the flag.
    let json = std::env::args_os().any(|argument| argument == "--json");
    if json && !is_answer {
        let message = error.render().to_string();
        let message = message.trim_start_matches("error: ").trim_end().to_owned();
        let error = Error::invalid_argument(message);
        output::show_error(&error, true, serde_json::Map::new());
        return Outcome::Refused.exit_code();
    }
    match error.print() {
        Ok(()) => Outcome::found(is_answer).exit_code(),
        Err(_) => Outcome::Failed.exit_code(),
    }
}
