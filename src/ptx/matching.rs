//! Matches instructions against the rows of the tables.
//!
//! A match gives the instruction its row, its modifiers by group and its types; otherwise the
//! nearest row determines the error. The order of modifiers and types is free, except where a row
//! of the texts or groups requires a modifier directly after the operation, or before another.

use super::ast::*;
use super::instruction::{Suffix, Written};
use super::legality::Judged;
use super::lexer::is_directive;
use super::parser::{Parse, Parser, Reported};
use super::requirements::Subject;
use crate::diag::{Diagnostic, Pos};
use crate::tables::ptx::{
    Form, Group, GroupInfo, MODIFIER_BY_TEXT, Modifiers, Needs, OP_BY_NAME, Op, PLANNED_FORMS, Role, RowId, ScalarType,
    Space, SpecialRegister, VECTORS,
};
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::Arc;

/// Largest element of a vector in memory, in bits (PTX ISA 9.0, 9.7.9).
const MAX_ELEMENT: u32 = 64;

/// Width of an address of the 32-bit model, in bits.
const NARROW_ADDRESS: u32 = 32;

/// The modifiers present, with their text and position.
type Set<'a> = SmallVec<[(Group, u8, Suffix<'a>); 8]>;

/// Type suffixes in source order.
pub type Types = SmallVec<[ScalarType; 2]>;

/// Why a form does not match an instruction's modifiers.
#[derive(Clone, Copy)]
enum Problem {
    /// A required group is absent.
    Missing(Group),
    /// The modifier at this index belongs to a group that the form does not have.
    Illegal(usize),
    /// The modifier at this index belongs to a group of the form, but the form does not allow its
    /// text.
    Wrong(usize),
}

impl<'a> Parser<'a> {
    /// Finds the row of an instruction and checks its operands, version and target.
    pub fn resolve(&mut self, mut written: Written<'a>) -> Parse<Instruction> {
        let op = written.op;
        let sorted = match self.sorted.get(written.whole) {
            Some(sorted) => sorted.clone(),
            None => match sort(&written) {
                Ok(sorted) => {
                    let sorted = Rc::new(sorted);
                    self.sorted.insert(written.whole, sorted.clone());
                    sorted
                }
                Err(bad) => return Err(self.unresolved(&written, bad)),
            },
        };
        let Sorted { mods, types, rows, .. } = &*sorted;
        let set = sorted.set(&written);
        let mut mismatch = None;
        let mut found = None;
        for (row, form) in rows {
            match self.check_operands(form, types, mods, &written) {
                Ok(()) => {
                    found = Some((*row, *form));
                    break;
                }
                Err(bad) => mismatch = mismatch.or(Some(bad)),
            }
        }
        let Some((row, form)) = found else {
            let bad = match (mismatch, nearest(op, &set, mods, types)) {
                (Some(bad), _) => bad,
                (_, Some(problem)) => explain(op, &set, problem, written.pos),
                _ => (written.pos, format!("Unexpected instruction types specified for '{}'", called(op, mods))),
            };
            return Err(self.unresolved(&written, bad));
        };
        if op == Op::Call {
            self.check_call(written.pos, &written.operands)?;
        }
        self.check_needs(&written, form, &set, types, mods);
        self.refused = false;
        self.check_ranges(&written);
        if op == Op::Vmad {
            self.check_signs(mods, &written.operands);
        }
        self.normalise(form, &mut written.operands);
        self.check_address_width(form, mods, &written);
        let Written { pos, operands, .. } = written;
        Ok(Instruction { pos, guard: None, op, row, mods: mods.clone(), types: types.clone(), operands })
    }

    /// Notes the first address in generic or global space that has 32 bits, and warns of narrower
    /// ones.
    fn check_address_width(&mut self, form: &Form, mods: &Modifiers, written: &Written) {
        let bits = |operand: &Operand| match &operand.kind {
            OperandKind::Address(Address { base: AddressBase::Register(id), .. }) => {
                Some(self.body.registers[*id].ty.bits())
            }
            _ => None,
        };
        if !matches!(mods.space, None | Some(Space::Global)) || !form.op.has_wide_address() {
            return;
        }
        let memory = form.args.iter().zip(&written.operands).filter(|(arg, _)| arg.role == Role::Mem);
        let Some(bits) = memory.filter_map(|(_, operand)| bits(operand)).min() else { return };
        if bits == NARROW_ADDRESS && self.module.narrow_address.is_none() {
            self.module.narrow_address = Some(NarrowAddress { pos: written.pos, is_sized: self.is_sized });
        }
        if bits < NARROW_ADDRESS && self.is_sized {
            let line = written.pos.line;
            let text =
                format!("Program uses {bits}-bit address on line '{line}' which is conflicting with .address_size 64");
            self.diags.push(Diagnostic::note(text));
        } else if bits < NARROW_ADDRESS && !std::mem::replace(&mut self.is_narrow, true) {
            let what = " 64 Bit host architecture (--machine) being used mismatches with";
            self.diags.push(Diagnostic::note(format!("{what} .address_size of {bits} bits")));
        }
    }

    /// Reports an instruction that no row fits: as not supported yet if it is a planned form.
    fn unresolved(&mut self, written: &Written<'a>, (pos, message): (Pos, String)) -> Reported {
        let has = |word: &&str| written.suffixes.iter().any(|suffix| suffix.0 == *word);
        let planned = PLANNED_FORMS.iter().find(|(op, words)| *op == written.op && words.iter().all(has));
        let Some((op, words)) = planned else { return self.error(pos, message) };
        let name = words.iter().fold(op.name().to_string(), |name, word| name + "." + word);
        self.error(written.pos, format!("Instruction '{name}' is not supported yet"))
    }

    /// Checks the version and target that a form, its modifiers and its types require.
    fn check_needs(&mut self, w: &Written<'a>, form: &Form, set: &Set<'a>, types: &Types, mods: &Modifiers) {
        let (op, pos) = (w.op, w.pos);
        self.refused = self.refuses(op, Judged { pos, name: op.name(), suffixes: &w.suffixes, operands: &w.operands });
        if let Some(gone) = op.gone() {
            self.check_gone(op, gone, pos);
        }
        if form.on.is_none() && !self.has(form.needs) {
            // The new part of the name: the whole operation, the type, or a combination of
            // modifiers.
            let mut what = op.name().to_string();
            let older = |types: Option<&Types>| {
                let fits = |form: &Form| types.is_none_or(|types| takes_types(form, types));
                op.forms().any(|(_, other)| self.has(other.needs) && fits(other))
            };
            if older(Some(types)) {
                w.suffixes.iter().for_each(|suffix| what.extend([".", suffix.0]));
            } else if older(None) {
                types.iter().for_each(|ty| what.extend([".", ty.name()]));
            }
            self.need(Subject::Feature(&what, form.needs), pos);
        }
        let typed = || types.iter().fold(op.name().to_string(), |name, ty| name + "." + ty.name());
        if let (Some(on), Some(target)) = (form.on, self.target_row)
            && on >> target.column & 1 == 0
        {
            if !self.refused {
                let general = || format!("Instruction '{}' not supported on .target '{{target}}'", typed());
                let text = if form.refused.is_empty() { general() } else { form.refused.to_string() };
                self.error(pos, text.replace("{target}", target.name));
            }
            return;
        }
        if form.on.is_some() && self.module.version < form.needs.ptx {
            let (what, (major, minor)) = (format!("Feature '{}'", typed()), form.needs.ptx);
            self.error(pos, format!("{what} requires PTX ISA .version {major}.{minor} or later"));
        }
        self.check_width(w, form, types, mods);
        for requirement in op.requirements() {
            let applies = requirement.types == 0 || types.first().is_some_and(|t| requirement.types & t.bit() != 0);
            if !applies || self.has(requirement.needs) {
                continue;
            }
            match requirement.text {
                None => self.need_type(op, types, requirement.needs, pos),
                Some((group, value)) => {
                    let written = set.iter().find(|(g, v, _)| (*g, *v) == (group, value));
                    let Some((_, _, suffix)) = written else { continue };
                    let (text, says) = (format!(".{}", suffix.0), requirement.says.replace("{op}", op.name()));
                    let subject = match says.as_str() {
                        "" => Subject::Modifier(&text, requirement.needs),
                        says => Subject::Named(says, requirement.needs),
                    };
                    self.need(subject, suffix.1);
                }
            }
        }
    }

    /// Reports an operation that the file's version has removed (error) or deprecated (warning).
    /// The successor always has the same name with `.sync`.
    fn check_gone(&mut self, op: Op, gone: Needs, pos: Pos) {
        let what = format!("Instruction '{}' without '.sync'", op.name());
        if self.refused {
            return;
        }
        if self.has(gone) {
            let ((major, minor), sm) = (gone.ptx, gone.sm);
            let since = format!("on .target sm_{sm} and higher from PTX ISA version {major}.{minor}");
            self.error(pos, format!("{what} is not supported {since}"));
            return;
        }
        let later = format!("sm_{} and later architectures", gone.sm);
        self.diags.push(Diagnostic::warning(pos, format!("{what} may produce unpredictable results on {later}")));
        let successor = OP_BY_NAME.get(&format!("{}.sync", op.name())).copied().flatten();
        let since = successor.and_then(|op| op.forms().map(|(_, form)| form.needs.ptx).min());
        if let Some((major, minor)) = since.filter(|since| self.module.version >= *since) {
            let since = format!("is deprecated since PTX ISA version {major}.{minor}");
            let text = format!("{what} {since} and will be discontinued in a future PTX ISA version");
            self.diags.push(Diagnostic::warning(pos, text));
        }
    }

    /// Checks that the vector of a load or store is not too wide for its space, version and target.
    fn check_width(&mut self, w: &Written<'a>, form: &Form, types: &Types, mods: &Modifiers) {
        let (Some(vector), Some(ty)) = (mods.vector, types.first()) else { return };
        if !form.args.iter().any(|arg| arg.role == Role::Mem) {
            return;
        }
        let bits = vector.elements() * ty.bits();
        let Some(info) = VECTORS.iter().find(|v| bits <= v.bits && ty.bits() <= MAX_ELEMENT) else {
            let widest = VECTORS.last().map_or(0, |v| v.bits);
            self.error(w.pos, format!("Vector type too large, exceeds {widest} bit limit"));
            return;
        };
        if mods.space.is_some_and(|space| info.spaces != 0 && info.spaces >> space as u32 & 1 == 0) {
            let feature = format!("'{} bit wide load/store'", info.bits);
            self.error(w.pos, format!("global state space expected for feature {feature}"));
        }
        if !self.has(info.needs) {
            self.need(Subject::Feature(&format!("{} bit wide load/store", info.bits), info.needs), w.pos);
        }
    }

    /// Normalises operands to the form that the tree guarantees: where memory is expected,
    /// `name[i]` becomes `[name+i*size]`; a one-element vector becomes its element; a vector
    /// register becomes the vector of its elements.
    fn normalise(&self, form: &Form, operands: &mut [Operand]) {
        for (arg, operand) in form.args.iter().zip(operands) {
            match (arg.role, &mut operand.kind) {
                (Role::Mem, OperandKind::Symbol { symbol, offset, .. }) => {
                    let base = AddressBase::Symbol(*symbol);
                    operand.kind =
                        OperandKind::Address(Address { base, offset: *offset, rest: Rest::default(), unified: false });
                }
                (
                    Role::Vdst | Role::Vsrc | Role::Xdst | Role::Xsrc | Role::Pack | Role::Unpack,
                    OperandKind::Vector(elements),
                ) if elements.len() == 1 => {
                    if let Some(only) = elements.pop() {
                        *operand = only;
                    }
                }
                (Role::Vdst | Role::Vsrc | Role::Xdst | Role::Xsrc | Role::Pack | Role::Unpack | Role::Any, _) => {
                    self.open_vector(operand)
                }
                _ => {}
            }
        }
    }

    /// Replaces a vector register, or a special register of several elements, by the vector of its
    /// elements.
    fn open_vector(&self, operand: &mut Operand) {
        let pos = operand.pos;
        let elements: Vec<OperandKind> = match operand.kind {
            OperandKind::Register(used) if used.part == Part::Whole => {
                let count = self.body.registers[used.register].vector;
                let element = |n| OperandKind::Register(RegisterUse { part: Part::Element(n as u8), ..used });
                (0..count).map(element).collect()
            }
            OperandKind::Special(special) if special.info().vector > 1 => {
                let named = |axis| SpecialRegister::by_name(&format!("{}.{axis}", special.name()));
                ["x", "y", "z", "w"].into_iter().filter_map(named).map(OperandKind::Special).collect()
            }
            _ => return,
        };
        if elements.len() > 1 {
            operand.kind = OperandKind::Vector(elements.into_iter().map(|kind| Operand { pos, kind }).collect());
        }
    }

    /// Checks the rules of `vmad` on signs, which the rows cannot express (PTX ISA 9.0, 9.7.17.6).
    fn check_signs(&mut self, mods: &Modifiers, operands: &[Operand]) {
        let negated = |o: &Operand| matches!(o.kind, OperandKind::Register(used) if used.negate);
        let signs: SmallVec<[bool; 4]> = operands.iter().map(negated).collect();
        let (Some(first), [_, a, b, c]) = (operands.first(), signs.as_slice()) else { return };
        if a ^ b && *c {
            self.error(first.pos, "Operand negation limited to either (source A xor source B) or source C");
        } else if mods.plus_one && (*a || *b || *c) {
            self.error(first.pos, "Conflicting use of '.po' modifier with operand negation");
        }
    }

    fn need_type(&mut self, op: Op, types: &Types, needs: Needs, pos: Pos) {
        let ty = types.first().map_or("", |t| t.name());
        self.need(Subject::Feature(&format!("{}.{ty}", op.name()), needs), pos);
    }
}

/// What the name of an instruction with its suffixes says, wherever it stands.
pub struct Sorted {
    /// The modifiers, each with its place among the suffixes.
    set: SmallVec<[(Group, u8, usize); 8]>,
    /// All instructions that are spelt so share them.
    mods: Arc<Modifiers>,
    types: Types,
    /// The rows that take these modifiers and types.
    rows: SmallVec<[(RowId, &'static Form); 2]>,
}

impl Sorted {
    #[inline]
    fn set<'a>(&self, written: &Written<'a>) -> Set<'a> {
        self.set.iter().map(|(group, value, at)| (*group, *value, written.suffixes[*at])).collect()
    }
}

/// The first problem that the row has which comes nearest to taking these modifiers and types.
fn nearest(op: Op, set: &Set, mods: &Modifiers, types: &Types) -> Option<Problem> {
    let rows = op.forms().filter(|(_, form)| takes_types(form, types));
    let problems = rows.filter_map(|(_, form)| {
        let (count, problem) = problems(form, set, mods);
        Some((count, problem?))
    });
    // Of equally near rows the first.
    problems.min_by_key(|(count, _)| *count).map(|(_, problem)| problem)
}

/// Sorts suffixes into modifiers and types, and finds the rows that take them.
fn sort(written: &Written) -> Result<Sorted, (Pos, String)> {
    let op = written.op;
    let mut set: SmallVec<[(Group, u8, usize); 8]> = SmallVec::new();
    let (mut mods, mut types) = (Modifiers::default(), Types::new());
    for (at, suffix) in written.suffixes.iter().enumerate() {
        if let Some(ty) = ScalarType::by_name(suffix.0) {
            types.push(ty);
            continue;
        }
        let Some(places) = MODIFIER_BY_TEXT.get(suffix.0) else {
            let dot = format!(".{}", suffix.0);
            let message = if is_directive(&dot) {
                format!("Parsing error near '{dot}': syntax error")
            } else {
                format!("Unknown modifier '{dot}'")
            };
            return Err((suffix.1, message));
        };
        let takes = |group: Group| op.forms().any(|(_, form)| form.rules.iter().any(|rule| rule.group == group));
        let mut taken = places.iter().filter(|(group, _)| takes(*group));
        let place = taken.clone().find(|(group, _)| mods.get(*group).is_none());
        let place = place.or(taken.next()).or(places.first());
        let Some(&(group, value)) = place else { continue };
        let (info, bit) = (group.info(), 1 << value);
        if mods.get(group) == Some(value) && info.again & bit != 0 {
            continue;
        }
        let behind = info.before.is_some_and(|group| mods.get(group).is_some());
        if behind || info.first & bit != 0 && at > 0 {
            return Err((suffix.1, out_of_place(op, info, suffix.0)));
        }
        if mods.get(group).is_some() {
            let message = match group.info().twice {
                "" => format!("Duplicate .{} modifier", suffix.0),
                twice => fill(twice, op, suffix.0),
            };
            return Err((suffix.1, message));
        }
        mods.set(group, value);
        set.push((group, value, at));
    }
    let mut sorted = Sorted { set, mods: Arc::new(mods), types, rows: SmallVec::new() };
    let set = sorted.set(written);
    let fits = |form: &Form| takes_types(form, &sorted.types) && problems(form, &set, &sorted.mods).1.is_none();
    sorted.rows = op.forms().filter(|(_, form)| fits(form)).collect();
    Ok(sorted)
}

/// The message about a modifier that must precede another.
fn out_of_place(op: Op, info: &GroupInfo, text: &str) -> String {
    match info.wrong {
        "" => format!("Unknown modifier '.{text}'"),
        wrong => fill(wrong, op, text),
    }
}

/// The name of an instruction in most messages of ptxas: with the part of a product, the direction
/// of a shift or of a conversion, and without `.sync`.
pub fn called(op: Op, mods: &Modifiers) -> String {
    let mut name = op.name().trim_end_matches(".sync").to_string();
    for group in [Group::MulMode, Group::ShiftDirection, Group::To] {
        if let Some(text) = mods.get(group).and_then(|value| group.info().texts.get(usize::from(value))) {
            name.extend([".", text]);
        }
    }
    name
}

fn takes_types(form: &Form, types: &Types) -> bool {
    form.types.len() == types.len() && form.types.iter().zip(types).all(|(mask, ty)| mask & ty.bit() != 0)
}

/// Number of modifiers that a form lacks or does not accept, and the first of them; those not
/// accepted come first.
fn problems(form: &Form, set: &Set, mods: &Modifiers) -> (usize, Option<Problem>) {
    let mut count = 0;
    let mut first = None;
    for (i, (group, value, _)) in set.iter().enumerate() {
        let rule = form.rules.iter().find(|rule| rule.group == *group);
        let problem = match rule {
            Some(rule) if rule.mask >> value & 1 != 0 => continue,
            Some(_) => Problem::Wrong(i),
            None => Problem::Illegal(i),
        };
        count += 1;
        first = first.or(Some(problem));
    }
    for rule in form.rules.iter().filter(|rule| rule.required && mods.get(rule.group).is_none()) {
        count += 1;
        first = first.or(Some(Problem::Missing(rule.group)));
    }
    (count, first)
}

/// The message about a problem, and its position.
fn explain(op: Op, set: &Set, problem: Problem, pos: Pos) -> (Pos, String) {
    let general = |text: &str| format!("Illegal modifier '.{text}' for instruction '{}'", op.name());
    match problem {
        Problem::Missing(group) => match group.info().missing {
            "" => {
                let texts = group.info().texts.join("', '.");
                (pos, format!("Modifier '.{texts}' required for instruction '{}'", op.name()))
            }
            missing => (pos, fill(missing, op, "")),
        },
        Problem::Illegal(i) | Problem::Wrong(i) => {
            let (group, _, (text, place)) = set[i];
            let info = group.info();
            let template = if matches!(problem, Problem::Wrong(_)) { info.wrong } else { info.illegal };
            (place, if template.is_empty() { general(text) } else { fill(template, op, text) })
        }
    }
}

/// Fills in the placeholders of a message of the tables.
fn fill(template: &str, op: Op, text: &str) -> String {
    template.replace("{op}", op.name()).replace("{text}", &format!(".{text}"))
}
