//! Opcodes that are not functions of their sources: stores, atomics, barriers, shuffles, matrix
//! multiplications.
//!
//! The input is a random word of every form, with operands of every kind in place of its general
//! registers. The number of instructions that the legalizer inserts must equal the smallest number
//! that any choice of operands needs.

use super::build::{Put, has_wide_integer, kinds, legalized, of_word, registers, source};
use super::words::{Random, random_word};
use sassafras::legal::{SmBackend, backend::Inner};
use sassafras::ori::{File, Function, InstId, Operand, text};
use sassafras::pipeline::encodable::is_legal;
use sassafras::tables::encoding::{FORMS, Form};
use sassafras::tables::ori::{Class, Direction, Width};
use sassafras::tables::{Op, Prop, Target, backend};
use std::collections::BTreeMap;

/// Largest number of operand combinations per form.
const MOST: usize = 60;

/// The results for the forms of a target.
#[derive(Default)]
pub struct Tried {
    /// Number of instructions by opcode.
    pub of: BTreeMap<&'static str, usize>,
    pub moves: usize,
    /// Opcodes with their errors.
    pub wrong: Vec<(&'static str, String)>,
}

/// An instruction of a form, and the positions, widths and role widths of its sources in general
/// registers.
struct Line {
    function: Function,
    inst: InstId,
    sources: Vec<(usize, usize, Width)>,
}

impl Line {
    fn of(form: &Form, target: &'static Target, random: &mut Random) -> Option<Line> {
        let (mut function, inst) = of_word(target, random_word(form, target, random))?;
        function[inst].guard = Operand::NULL;
        if !is_legal(&function, inst) || has_wide_integer(&function, inst) {
            return None;
        }
        let roles = form.op.info().roles.iter().enumerate();
        let used = roles.filter(|(at, role)| {
            role.direction == Direction::Use && role.class == Class::Reg && !function.args(inst)[*at].is_null()
        });
        let sources = used.map(|(at, role)| (at, usize::from(function.width(inst, role)), role.width)).collect();
        Some(Line { function, inst, sources })
    }

    /// The instruction with other sources; those in `moved` are in registers.
    fn with(&self, puts: &[Put], moved: u32) -> Function {
        let mut function = self.function.clone();
        for (i, ((at, words, _), put)) in self.sources.iter().zip(puts).enumerate() {
            let in_register = moved >> i & 1 != 0;
            let operand = match put {
                _ if in_register => registers(&mut function, File::R, *words),
                _ => source(&mut function, *put, *words, i),
            };
            function.args_mut(self.inst)[*at] = operand;
        }
        function
    }

    fn fewest(&self, puts: &[Put]) -> Option<usize> {
        let cost = |moved: u32| (0..puts.len()).filter(|i| moved >> i & 1 != 0).map(|i| self.sources[i].1).sum();
        let needless = |moved: u32| (0..puts.len()).any(|i| moved >> i & 1 != 0 && puts[i] == Put::Reg);
        let all = (0..1u32 << puts.len()).filter(|moved| !needless(*moved));
        let encoded = |moved: &u32| {
            let function = self.with(puts, *moved);
            is_legal(&function, self.inst) && !has_wide_integer(&function, self.inst)
        };
        all.filter(encoded).map(cost).min()
    }
}

/// Opcodes that the backend legalizes and that are not tested elsewhere.
fn is_tried(op: Op, target: &'static Target) -> bool {
    let inner = Inner(backend(target.name).unwrap(), &is_legal);
    let taken = op.recipe().hook.is_none_or(|hook| inner.takes_operands_of(hook));
    taken && ![Prop::Pure, Prop::Pseudo, Prop::Bookkeeping].into_iter().any(|prop| op.has(prop))
}

/// Tests the forms of a target.
pub fn forms_of(target: &'static Target) -> Tried {
    let mut random = Random::new(u64::from(target.column) + 21);
    let mut tried = Tried::default();
    for form in FORMS.iter().filter(|form| form.is_on(target) && !form.alias && is_tried(form.op, target)) {
        let Some(line) = Line::of(form, target, &mut random) else { continue };
        // Matrix fragments are only in registers or zero, and the register count of a texture
        // operand follows from its modifiers.
        let product = form.op.has(Prop::Convergent);
        let fits = |put: &Put| *put == Put::Reg || *put == Put::Zero && product;
        let holds = |puts: &[Put]| {
            let mut both = line.sources.iter().zip(puts);
            both.all(|(source, put)| source.2 != Width::Fragment || fits(put))
        };
        let all: Vec<Vec<Put>> = kinds(line.sources.len().min(4)).into_iter().filter(|puts| holds(puts)).collect();
        if line.sources.is_empty() || line.sources.len() > 4 {
            continue;
        }
        let step = all.len().div_ceil(MOST);
        let first = random.below(step as u64) as usize;
        for puts in all.iter().skip(first).step_by(step) {
            one(&line, puts, &mut tried);
        }
    }
    tried
}

fn one(line: &Line, puts: &[Put], tried: &mut Tried) {
    let Some(fewest) = line.fewest(puts) else { return };
    let mut function = line.with(puts, 0);
    let name = function[line.inst].op.name();
    legalized(&mut function);
    let block = &function[function.entry()];
    let moves = block.len() - 2;
    *tried.of.entry(name).or_default() += 1;
    tried.moves += moves;
    if !is_legal(&function, block[moves]) || moves > fewest {
        let shown = text::print(&function);
        tried.wrong.push((name, format!("{puts:?}: {moves} moves, {fewest} are enough: {shown}")));
    }
}
