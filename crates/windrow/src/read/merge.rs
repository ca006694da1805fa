//! A merging cursor: one sorted stream of many sorted cursors.
//!
//! A binary heap orders the children by their current entries: the smallest first in forward direction,
//! the largest first in backward direction. The child on top is the leader. The better of its two heap
//! children is the runner-up. While the leader precedes the runner-up, a step costs one comparison, and
//! none if the leader is the only child. So the steps through consecutive entries of one child cost the
//! same for any number of children. A child that is [ahead](Cursor::is_ahead) reads its entry only when it
//! reaches the top.
//!
//! Invariants:
//! - I1: The heap holds exactly the valid children.
//! - I2: Children are in the order of their age: of each key, the entries of one are newer than those of the next ones. Where
//!   entries of one key meet, anything else is an error. It means that a write was applied twice, or that a file is in a wrong
//!   level: point reads, which ask the newer children first, would find something else.
//! - I3: After an error every further move returns an error.
//!
//! Concurrency: owned by one thread.

use std::cmp::Ordering;

use crate::base::key::{SEQUENCE_MAX, compare_entries, compare_keys};
use crate::base::{
    Cursor, Direction, Error, ErrorKind, Result, SequenceNumber, Sibling, Step, Trailer,
};
use crate::block::{Reach, Stride, Striding};

/// A stride among other children begins after so many steps of one leader, because most leaders that lead so long go on.
const STAYS_MIN: u32 = 2;

/// Whether the stream can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    /// Two children are not in the order of their age (I2); the present move reports it.
    Disordered,
    /// An error of this kind was reported (I3).
    Failed(ErrorKind),
}

/// Merges sorted cursors into one.
#[derive(Debug)]
pub(crate) struct MergingCursor<C> {
    children: Vec<C>,
    /// Indexes of the valid children, as a binary heap.
    group: Vec<usize>,
    /// The child on top of the heap, if the heap is not empty.
    leader: usize,
    /// The position of the runner-up in the heap, if it exists.
    runner_up: usize,
    /// Whether leader and runner-up are on the same user key.
    is_tied: bool,
    /// Steps since the last change of the leader or of the direction.
    stays: u32,
    direction: Direction,
    health: Health,
    /// A buffer for the current key during a change of direction.
    turning_key: Vec<u8>,
}

impl<C: Cursor> MergingCursor<C> {
    /// Merges `children`, newest first.
    pub(crate) fn new(children: Vec<C>) -> Self {
        Self {
            group: Vec::with_capacity(children.len()),
            children,
            leader: 0,
            runner_up: 1,
            is_tied: false,
            stays: 0,
            direction: Direction::Forward,
            health: Health::Sound,
            turning_key: Vec::new(),
        }
    }

    /// The children, in the order of [`new`](Self::new).
    pub(crate) fn children_mut(&mut self) -> &mut [C] {
        &mut self.children
    }

    /// Whether child `left` precedes child `right`.
    #[inline]
    fn precedes(&mut self, left: usize, right: usize) -> bool {
        let age = left.cmp(&right);
        let (left, right) = (&self.children[left], &self.children[right]);
        let mut order = compare_keys(left.key(), right.key());
        if order == Ordering::Equal {
            order = right.trailer().sequence().cmp(&left.trailer().sequence());
            if order != age && !(left.is_ahead() || right.is_ahead()) {
                self.health = Health::Disordered;
            }
        }
        match self.direction {
            Direction::Forward => order == Ordering::Less,
            Direction::Backward => order == Ordering::Greater,
        }
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let mut best = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if child < self.group.len() && self.precedes(self.group[child], self.group[best]) {
                    best = child;
                }
            }
            if best == position {
                return;
            }
            self.group.swap(position, best);
            position = best;
        }
    }

    /// Rebuilds the heap from the valid children.
    fn rebuild(&mut self) {
        self.group.clear();
        self.group
            .extend((0..self.children.len()).filter(|&index| self.children[index].is_valid()));
        self.order_group();
    }

    /// Orders the heap.
    fn order_group(&mut self) {
        for position in (0..self.group.len() / 2).rev() {
            self.sift_down(position);
        }
    }

    /// Applies `seek` to every child and orders the heap for `direction`.
    fn seek_all(
        &mut self,
        direction: Direction,
        mut seek: impl FnMut(&mut C) -> Result<()>,
    ) -> Result<()> {
        self.refuse_after_error()?;
        self.direction = direction;
        self.group.clear();
        for (index, child) in self.children.iter_mut().enumerate() {
            if let Err(error) = seek(child) {
                return Err(self.fail(error));
            }
            if child.is_valid() {
                self.group.push(index);
            }
        }
        self.order_group();
        self.lead()
    }

    /// Lets all children ask for what they will read, before the first one waits.
    #[inline]
    fn announce_all(&mut self, announce: impl FnMut(&mut C) -> bool) {
        if self.children.len() > 1 {
            let mut asked = self.children.iter_mut().map(announce);
            while asked.next() == Some(true) {}
        }
    }

    /// Fails the cursor if the comparisons found children that are not in the order of their age (I2).
    #[inline]
    fn refuse_disorder(&mut self) -> Result<()> {
        if self.health == Health::Disordered {
            let at = self.group.first().map(|&top| self.children[top].key());
            let key = at.unwrap_or_default().escape_ascii();
            let found = format!(
                "two sorted runs hold the same write, or an older one holds a newer write, at or near key \"{key}\""
            );
            return Err(self.fail(Error::new(ErrorKind::Corruption, found)));
        }
        Ok(())
    }

    /// Fails the cursor with `error` (I3).
    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.health = Health::Failed(error.kind());
        self.group.clear();
        error
    }

    /// Restores the order of the heap after a move of the leader.
    #[inline]
    fn settle_leader(&mut self, moved: Result<()>) -> Result<()> {
        if let Err(error) = moved {
            return Err(self.fail(error));
        }
        if !self.children[self.leader].is_valid() {
            self.group.swap_remove(0);
        } else if self.group.len() == 1 || self.leads() {
            self.stays = self.stays.saturating_add(1);
            return self.refuse_disorder();
        }
        self.sift_down(0);
        self.lead()
    }

    /// Finds the leader and the runner-up in an ordered heap. A child that is ahead must first read its
    /// entry, which may come after the entries of other children.
    fn lead(&mut self) -> Result<()> {
        self.stays = 0;
        loop {
            self.find_leaders();
            let is_ahead = !self.group.is_empty() && self.children[self.leader].is_ahead();
            if !is_ahead {
                return self.refuse_disorder();
            }
            self.arrive()?;
        }
    }

    #[cold]
    fn arrive(&mut self) -> Result<()> {
        if let Err(error) = self.children[self.leader].arrive() {
            return Err(self.fail(error));
        }
        if !self.children[self.leader].is_valid() {
            self.group.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// Whether the child on top of the heap still precedes the runner-up.
    #[inline]
    fn leads(&mut self) -> bool {
        let (leader, runner_up) = (self.leader, self.group[self.runner_up]);
        let keys = compare_keys(self.children[leader].key(), self.children[runner_up].key());
        self.is_tied = keys == Ordering::Equal;
        match (keys, self.direction) {
            (Ordering::Less, Direction::Forward) | (Ordering::Greater, Direction::Backward) => true,
            (Ordering::Equal, _) => self.precedes(leader, runner_up),
            _ => false,
        }
    }

    /// Finds the leader and the better of its heap children.
    fn find_leaders(&mut self) {
        let Some(&leader) = self.group.first() else {
            return;
        };
        self.leader = leader;
        self.runner_up = match self.group.len() {
            1 => {
                self.is_tied = false;
                return;
            }
            2 => 1,
            _ if self.precedes(self.group[2], self.group[1]) => 2,
            _ => 1,
        };
        let runner_up = self.group[self.runner_up];
        self.is_tied = self.children[leader].key() == self.children[runner_up].key();
    }

    /// Moves every child except the leader to the far side of the leader's entry.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        if direction == Direction::Backward {
            // Each child is on its first entry from the leader's entry on, so the steps of all lead before it.
            self.announce_all(C::announce_prev);
        }
        let leader = self.leader;
        let mut key = std::mem::take(&mut self.turning_key);
        key.clear();
        key.extend_from_slice(self.children[leader].key());
        let sequence = self.children[leader].trailer().sequence();
        let mut turned = Ok(());
        for (index, child) in self.children.iter_mut().enumerate() {
            if index == leader {
                continue;
            }
            turned = match direction {
                Direction::Forward => child.seek(&key, sequence),
                Direction::Backward => seek_before(child, &key, sequence),
            };
            if turned.is_err() {
                break;
            }
        }
        self.turning_key = key;
        if let Err(error) = turned {
            return Err(self.fail(error));
        }
        self.direction = direction;
        // The leader's own entry is the first in either direction.
        self.rebuild();
        self.lead()?;
        if self.group.first() != Some(&leader) {
            let error = out_of_order(&self.turning_key);
            return Err(self.fail(error));
        }
        Ok(())
    }

    /// Lets the valid children behind number `newest` pass a hole, if the leader is one of them.
    #[cold]
    fn pass(
        &mut self,
        newest: usize,
        direction: Direction,
        pass: impl Fn(&mut C) -> Result<()>,
    ) -> Result<bool> {
        self.refuse_after_error()?;
        if self.group.is_empty() || self.leader <= newest || self.direction != direction {
            return Ok(false);
        }
        let older = self.children.iter_mut().skip(newest + 1);
        let passed = older.filter(|child| child.is_valid()).try_for_each(pass);
        if let Err(error) = passed {
            return Err(self.fail(error));
        }
        self.rebuild();
        self.lead()?;
        Ok(true)
    }

    /// Ends the stream after the end or an error of its only child.
    #[cold]
    fn lose_leader(&mut self, moved: Result<Step>) -> Result<Step> {
        self.settle_leader(moved.map(drop)).map(|()| Step::END)
    }

    /// Moves forward with several children, or with a change of direction.
    #[inline(never)]
    fn next_of_many(&mut self) -> Result<Step> {
        if self.group.is_empty() {
            return self.refuse_after_error().map(|()| Step::END);
        }
        if self.direction != Direction::Forward {
            self.turn(Direction::Forward)?;
        }
        let (left, was_tied) = (self.leader, self.is_tied);
        let moved = self.children[left].next();
        let step = *moved.as_ref().unwrap_or(&Step::END);
        self.settle_leader(moved.map(drop))?;
        if self.group.is_empty() {
            Ok(Step::END)
        } else if self.leader == left {
            Ok(step)
        } else {
            // The new leader was the runner-up, or comes after it.
            Ok(Step::to(self.trailer(), was_tied))
        }
    }

    fn refuse_after_error(&self) -> Result<()> {
        match self.health {
            Health::Failed(kind) => Err(iteration_failed(kind)),
            _ => Ok(()),
        }
    }
}

/// Moves `child` to the last entry before (`key`, `sequence`), in two steps. Between the steps a memtable
/// may get entries that are not before it. The function then repeats the steps, which lead to an earlier
/// entry. Otherwise the entries are out of order, and the caller detects it.
fn seek_before(child: &mut impl Cursor, key: &[u8], sequence: SequenceNumber) -> Result<()> {
    let mut last: Option<(Vec<u8>, SequenceNumber)> = None;
    loop {
        child.seek(key, sequence)?;
        if child.is_valid() {
            child.prev()?;
        } else {
            child.seek_to_last()?;
        }
        if !child.is_valid() {
            return Ok(());
        }
        let found = (child.key(), child.trailer().sequence());
        let is_before = |(key, sequence): (&[u8], SequenceNumber)| {
            compare_entries(found.0, found.1, key, sequence).is_lt()
        };
        let is_earlier = last
            .as_ref()
            .is_none_or(|last| is_before((&last.0, last.1)));
        if is_before((key, sequence)) || !is_earlier {
            return Ok(());
        }
        last = Some((found.0.to_vec(), found.1));
    }
}

/// The error of a source whose checksums are right and whose entries are in a wrong order.
#[cold]
pub(crate) fn out_of_order(key: &[u8]) -> Error {
    let key = key.escape_ascii();
    let found = format!("the entries next to key \"{key}\" are not in order");
    Error::new(ErrorKind::Corruption, found)
}

/// The error of every move after a first error of `kind`.
pub(crate) fn iteration_failed(kind: ErrorKind) -> Error {
    Error::new(kind, "the iterator cannot continue after an earlier error")
}

impl<C: Sibling> Sibling for MergingCursor<C> {
    fn sibling(&self) -> Self {
        Self::new(self.children.iter().map(C::sibling).collect())
    }
}

impl<C: Cursor> Cursor for MergingCursor<C> {
    fn seek_to_first(&mut self) -> Result<()> {
        self.seek_all(Direction::Forward, C::seek_to_first)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.seek_all(Direction::Backward, C::seek_to_last)
    }

    /// The requests of all children are under way before the first child waits.
    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        self.refuse_after_error()?;
        self.announce_all(|child| child.announce(key));
        self.seek_all(Direction::Forward, |child| child.seek(key, sequence))
    }

    #[inline]
    fn next(&mut self) -> Result<Step> {
        if self.group.len() != 1 || self.direction != Direction::Forward {
            return self.next_of_many();
        }
        match self.children[self.leader].next() {
            Ok(step) if !step.is_end() => Ok(step),
            moved => self.lose_leader(moved),
        }
    }

    #[inline]
    fn is_ahead(&self) -> bool {
        false
    }

    fn arrive(&mut self) -> Result<()> {
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if self.group.is_empty() {
            return self.refuse_after_error();
        }
        if self.direction != Direction::Backward {
            self.turn(Direction::Backward)?;
        }
        let moved = self.children[self.leader].prev();
        self.settle_leader(moved)
    }

    fn pass_forward(&mut self, newest: usize, end: &[u8]) -> Result<bool> {
        self.pass(newest, Direction::Forward, |child| {
            if child.key() < end {
                child.seek(end, SEQUENCE_MAX)?;
            }
            Ok(())
        })
    }

    fn pass_backward(&mut self, newest: usize, start: &[u8]) -> Result<bool> {
        self.pass(newest, Direction::Backward, |child| {
            if child.key() >= start {
                seek_before(child, start, SEQUENCE_MAX)?;
            }
            Ok(())
        })
    }

    fn source(&self) -> usize {
        self.leader
    }

    #[inline]
    fn is_valid(&self) -> bool {
        !self.group.is_empty()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.children[self.leader].key()
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        self.children[self.leader].trailer()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.children[self.leader].value()
    }
}

impl<C: Striding> Striding for MergingCursor<C> {
    /// The leader lends its block up to the runner-up, if it has led for a while.
    #[inline]
    fn begin_stride(&self, stride: &mut Stride, reach: Reach<'_>) -> bool {
        if self.direction != reach.direction || self.group.is_empty() {
            return false;
        }
        let leader = &self.children[self.leader];
        if self.group.len() == 1 {
            return leader.begin_stride(stride, reach);
        }
        if self.stays < STAYS_MIN {
            return false;
        }
        let runner_up = self.children[self.group[self.runner_up]].key();
        leader.begin_stride(stride, reach.up_to(runner_up))
    }

    fn end_stride(&mut self, stride: &Stride) -> Result<()> {
        let leader = self.leader;
        let moved = self.children[leader].end_stride(stride);
        self.settle_leader(moved)?;
        if self.direction == Direction::Forward && self.leader != leader {
            // The stride ended before the runner-up.
            let error = out_of_order(self.children[leader].key());
            return Err(self.fail(error));
        }
        Ok(())
    }
}
