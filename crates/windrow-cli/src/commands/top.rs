//! `top`: a live picture of a database in the terminal, beside the process that writes.
//!
//! Concurrency: one thread. It waits for a key or for the next look.

mod screen;
mod view;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use windrow::{Error, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::DbArgs;
use crate::watch::Watched;
use view::View;

/// The size of a picture that is printed once.
const WIDTH: u16 = 100;
const HEIGHT: u16 = 40;

/// Keys are read between two pictures.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shows each level against its capacity, the jobs under way, operations and bytes per second, stalls and their causes, \
memory against its budget, and latencies. The process that writes keeps these in the file STATUS once a second. \
Without such a process only the levels are known. A step between two pictures is not visible, nor what other processes \
that read the database do. The keys q and Esc, and Ctrl-C, end it.

If standard output is no terminal, one picture is printed.

Examples:
  windrow top shop.db
  windrow top shop.db --once")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    of: DbArgs,

    /// Time between two pictures
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration)]
    interval: Duration,

    /// Print one picture and end
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(args: &TopArgs, output: &mut Output) -> Result<Outcome> {
    let mut watched = Watched::new(&args.of.db);
    let look = watched.look()?;
    let first = View::new(watched.folder(), &look, None);
    if args.once || output.is_json() || !io::stdout().is_terminal() {
        output.object(&first.numbers())?;
        output.line(picture(&first))?;
        return Ok(Outcome::Done);
    }
    let failed = |error| Error::io("draw on", Path::new("the terminal"), error);
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let ended = show(
        &mut terminal,
        &mut watched,
        first,
        args.interval.max(INTERVAL_MIN),
    );
    ratatui::restore();
    ended.map(|()| Outcome::Done)
}

/// Shows one picture after the other, until a key ends it.
fn show(
    terminal: &mut DefaultTerminal,
    watched: &mut Watched,
    mut view: View,
    interval: Duration,
) -> Result<()> {
    let failed = |error| Error::io("draw on", Path::new("the terminal"), error);
    loop {
        terminal
            .draw(|frame| screen::draw(&view, frame.area(), frame.buffer_mut()))
            .map_err(failed)?;
        if is_ended_within(interval).map_err(failed)? {
            return Ok(());
        }
        // The process that writes may be about to open the database, or to close it.
        match watched.look() {
            Ok(look) => view = View::new(watched.folder(), &look, Some(&view)),
            Err(error) => view.title = format!("windrow top: {error}"),
        }
    }
}

/// Waits for `interval`. Returns early, and true, if a key ends the command.
fn is_ended_within(interval: Duration) -> io::Result<bool> {
    let start = Instant::now();
    while let Some(rest) = interval.checked_sub(start.elapsed()) {
        if !event::poll(rest)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if is_end(&key) => return Ok(true),
            // The next picture fits.
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

fn is_end(key: &KeyEvent) -> bool {
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || has_control && key.code == KeyCode::Char('c')
}

/// One picture as text.
fn picture(view: &View) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, WIDTH, HEIGHT));
    screen::draw(view, buffer.area, &mut buffer);
    let cells: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
    let rows = cells.chunks(usize::from(WIDTH));
    let rows = rows.map(|row| row.concat().trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests;
