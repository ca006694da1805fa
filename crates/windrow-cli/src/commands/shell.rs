//! `completions` and `man`: what a shell and a reader of manuals know of the commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;
use windrow::{Error, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::tables::plural;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints a script, with --json too.

Examples:
  windrow completions bash > ~/.local/share/bash-completion/completions/windrow
  windrow completions zsh > ~/.zfunc/_windrow
  windrow completions fish > ~/.config/fish/completions/windrow.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes windrow.1, and a page for each command such as windrow-put.1. Creates the folder, and \
replaces pages of these names.

Examples:
  windrow man ~/.local/share/man/man1
  man windrow-put")]
pub(crate) struct ManArgs {
    /// Folder for the pages
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn completions(
    args: &CompletionsArgs,
    mut program: Command,
    output: &mut Output,
) -> Result<Outcome> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    output.bytes(&script)?;
    Ok(Outcome::Done)
}

pub(crate) fn man(args: &ManArgs, mut program: Command, output: &mut Output) -> Result<Outcome> {
    let failed = |operation| move |error| Error::io(operation, &args.folder, error);
    fs::create_dir_all(&args.folder).map_err(failed("create"))?;
    // The names of commands and their global options are complete only then.
    program.build();
    let mut pages = vec![program.clone()];
    pages.extend(
        program
            .get_subcommands()
            .filter(|it| !it.is_hide_set())
            .cloned(),
    );
    let mut written = 0_u64;
    for page in pages {
        let name = page
            .get_display_name()
            .unwrap_or(page.get_name())
            .to_owned();
        let path = args.folder.join(format!("{name}.1"));
        let mut text = Vec::new();
        let rendered = clap_mangen::Man::new(page).title(name).render(&mut text);
        rendered
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| Error::io("write", &path, error))?;
        written += 1;
    }
    output.object(&json!({ "pages": written }))?;
    output.line(format_args!(
        "{} in {}",
        plural(written, "page"),
        args.folder.display()
    ))?;
    Ok(Outcome::Done)
}
