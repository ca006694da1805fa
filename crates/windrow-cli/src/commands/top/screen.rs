//! Where the parts of a picture are on the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Widget};

use super::view::View;

/// Draws `view` into `area`.
pub(super) fn draw(view: &View, area: Rect, buffer: &mut Buffer) {
    let jobs = lines(&view.jobs) + 1;
    let numbers = lines(&view.rates).max(lines(&view.memory)) + 1;
    let others = lines(&view.stalls).max(lines(&view.latencies)) + 1;
    let [title, levels, jobs, numbers, others] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(jobs),
        Constraint::Length(numbers),
        Constraint::Length(others),
    ])
    .areas(area);
    view.title.clone().bold().render(title, buffer);
    part("levels", &view.levels, levels, buffer);
    part("jobs under way", &view.jobs, jobs, buffer);
    let [left, right] = halves(numbers);
    part("per second", &view.rates, left, buffer);
    part("memory", &view.memory, right, buffer);
    let [left, right] = halves(others);
    part("stalls since the open", &view.stalls, left, buffer);
    part("latencies since the open", &view.latencies, right, buffer);
}

fn halves(area: Rect) -> [Rect; 2] {
    Layout::horizontal([Constraint::Percentage(42), Constraint::Percentage(58)]).areas(area)
}

fn lines(of: &[Line<'_>]) -> u16 {
    u16::try_from(of.len()).unwrap_or(u16::MAX).max(1)
}

fn part(title: &str, lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    let heading = Block::new().title(title.to_owned().dim());
    let text = if lines.is_empty() {
        vec![Line::from("none".dim())]
    } else {
        lines.to_vec()
    };
    Paragraph::new(text).block(heading).render(area, buffer);
}
