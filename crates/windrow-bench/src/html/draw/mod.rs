//! The parts of a plot: axes, shapes and text as SVG, and the markup of both SVG and HTML.

pub(super) mod axis;
pub(super) mod canvas;
pub(super) mod markup;
pub(super) mod number;
pub(super) mod picture;
