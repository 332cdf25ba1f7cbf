//! Parses instructions: guard, name with suffixes, operands.
//!
//! Everything up to the `;` is read before the instruction is matched against the tables, so an
//! error in one instruction does not disturb the next. An instruction that parses matches a row of
//! the tables.

use super::ast::*;
use super::call::{Formal, Formals};
use super::legality::Judged;
use super::lexer::{Tok, Token};
use super::parser::{Parse, Parser, Reported};
use super::scope::Name;
use crate::diag::Pos;
use crate::tables::ptx::{FREE_NAMES, LATER_NAMES, MODIFIER_BY_TEXT, OP_BY_NAME, Op, Role, TypeClass};
use smallvec::SmallVec;

/// Largest number of operands of an instruction.
const MAX_OPERANDS: usize = 256;

/// Largest number of suffixes that belong to an operation's name.
const NAME_SUFFIXES: usize = 4;

/// A modifier or type: its text without the dot, and its position.
pub type Suffix<'a> = (&'a str, Pos);

/// An instruction as written, not yet matched to a row.
pub struct Written<'a> {
    /// Position of the operation.
    pub pos: Pos,
    /// Its name with all suffixes.
    pub whole: &'a str,
    pub op: Op,
    /// Modifiers and types in source order.
    pub suffixes: SmallVec<[Suffix<'a>; 8]>,
    pub operands: SmallVec<[Operand; 4]>,
}

/// What an instruction name resolves to.
enum Operation {
    Known(Op),
    /// An operation without forms (not implemented), by its name.
    Planned(&'static str),
}

impl<'a> Parser<'a> {
    /// Parses one instruction up to its `;`. The result goes to `out`, after the additions that its
    /// operands need.
    pub fn instruction(&mut self, out: &mut Vec<Statement>) -> Parse<()> {
        let guard = if self.is_sign("@") { self.guard()? } else { None };
        let name = self.expect_ident()?;
        let mut suffixes = SmallVec::new();
        let mut last = name;
        while self.peek().tok == Tok::Dot {
            last = self.next();
            suffixes.push((&self.text(last)[1..], last.pos));
        }
        let source: &'a str = self.source;
        let whole = &source[name.start as usize..(last.start + last.len) as usize];
        let (named, labels) = self.known_operation(whole, name, &mut suffixes);
        let op = if let Ok(Operation::Known(op)) = named { Some(op) } else { None };
        self.sums.clear();
        let operands = self.operands(op, labels);
        if let (Ok(Operation::Planned(planned)), true) = (&named, self.check_rows) {
            self.refuse_planned(name.pos, planned, &suffixes, operands.as_deref().unwrap_or_default());
        }
        let operands = operands?;
        self.expect_sign(";")?;
        let Some(op) = op.filter(|_| self.check_rows) else { return Ok(()) };
        let written = Written { pos: name.pos, whole, op, suffixes, operands };
        // The error is reported and the cursor is behind the instruction, so no recovery is needed.
        if let Ok(mut instruction) = self.resolve(written) {
            instruction.guard = guard;
            self.add_sums(out);
            out.push(Statement::Instruction(Box::new(instruction)));
        }
        Ok(())
    }

    /// `@p` or `@!p`
    fn guard(&mut self) -> Parse<Option<Guard>> {
        self.next();
        let negated = self.accept_sign("!");
        let token = self.expect_ident()?;
        let name = self.text(token);
        let Some(Name::Register(register)) = self.find_local(name) else {
            self.error(token.pos, format!("Unknown symbol '{name}'"));
            return Ok(None);
        };
        let of = &self.body.registers[register];
        if of.ty.class() != TypeClass::Predicate || of.vector != 1 {
            self.error(token.pos, "Predicate expression expected");
        }
        Ok(Some(Guard { register, negated }))
    }

    /// Rejects an operation without forms: illegal on the target, or not supported yet.
    fn refuse_planned(&mut self, pos: Pos, name: &str, suffixes: &[Suffix], operands: &[Operand]) {
        if !self.refuses_planned(Judged { pos, name, suffixes, operands }) {
            self.error(pos, format!("Instruction '{name}' is not supported yet"));
        }
    }

    /// As [`Parser::operation`], with the operands that are labels. A text repeats few names, and
    /// what is found for one is kept if nothing else was done or reported.
    fn known_operation(
        &mut self,
        whole: &'a str,
        name: Token,
        suffixes: &mut SmallVec<[Suffix<'a>; 8]>,
    ) -> (Parse<Operation>, u32) {
        if let Some((op, taken, labels)) = self.operations.get(whole) {
            suffixes.drain(..*taken);
            return (Ok(Operation::Known(*op)), *labels);
        }
        let (before, reported) = (suffixes.clone(), self.diags.len());
        let named = self.operation(name, suffixes);
        let Ok(Operation::Known(op)) = named else { return (named, 0) };
        let (labels, taken) = (label_places(op), before.len() - suffixes.len());
        if before[taken..] == suffixes[..] && self.diags.len() == reported {
            self.operations.insert(whole, (op, taken, labels));
        }
        (named, labels)
    }

    /// The operation with the longest name made of `name` and leading suffixes. Removes those
    /// suffixes.
    fn operation(&mut self, name: Token, suffixes: &mut SmallVec<[Suffix<'a>; 8]>) -> Parse<Operation> {
        let mut whole = String::from(self.text(name));
        let mut found = OP_BY_NAME.get_entry(whole.as_str()).map(|(name, op)| (*op, 0, *name));
        let mut free = free_name(&whole, 0, suffixes);
        for (i, suffix) in suffixes.iter().take(NAME_SUFFIXES).enumerate() {
            whole.push('.');
            whole.push_str(suffix.0);
            if let Some((name, op)) = OP_BY_NAME.get_entry(whole.as_str()) {
                found = Some((*op, i + 1, *name));
            }
            free = free_name(&whole, i + 1, suffixes).or(free);
        }
        if let Some(free) = free.filter(|free| found.is_none_or(|(_, taken, _)| taken <= free.taken)) {
            suffixes.remove(free.last);
            found = Some((Some(free.op), free.taken, free.spelt));
        }
        if let Some((Some(op), taken, spelt)) = found {
            suffixes.drain(..taken);
            let last = op.name().rsplit('.').next().unwrap_or_default();
            suffixes.retain(|suffix| suffix.0 != last || !repeats(last));
            if spelt != op.name() {
                self.check_spelling(spelt, name.pos);
            }
            return Ok(Operation::Known(op));
        }
        match found {
            _ if !self.check_rows => Err(Reported),
            Some((_, taken, name)) => {
                suffixes.drain(..taken);
                Ok(Operation::Planned(name))
            }
            None => {
                let text = self.text(name);
                Err(self.error(name.pos, format!("Not a name of any known instruction: '{text}'")))
            }
        }
    }

    /// Rejects an alternative spelling of an operation that the file's version does not know yet.
    fn check_spelling(&mut self, name: &str, pos: Pos) {
        let Some((major, minor)) = LATER_NAMES.get(name).filter(|since| self.module.version < **since) else { return };
        self.error(pos, format!("Feature '{name}' requires PTX ISA .version {major}.{minor} or later"));
    }

    /// Everything up to the `;`; the bits of `labels` are operands that are labels.
    fn operands(&mut self, op: Option<Op>, labels: u32) -> Parse<SmallVec<[Operand; 4]>> {
        if self.text(self.peek()) == ";" {
            return Ok(SmallVec::new());
        }
        if op == Some(Op::Call) {
            return self.call_operands();
        }
        let mut operands = SmallVec::new();
        loop {
            let takes_label = labels >> operands.len().min(31) & 1 != 0;
            operands.push(self.operand(takes_label)?);
            if operands.len() > MAX_OPERANDS {
                let pos = self.pos();
                return Err(self.error(pos, format!("More than {MAX_OPERANDS} operands")));
            }
            if !self.accept_sign(",") {
                return Ok(operands);
            }
        }
    }

    /// `(results), callee, (arguments), prototype`: all but the callee are optional.
    fn call_operands(&mut self) -> Parse<SmallVec<[Operand; 4]>> {
        let pos = self.pos();
        let mut operands = SmallVec::new();
        let list = |elements| Operand { pos, kind: OperandKind::List(elements) };
        if self.is_sign("(") {
            operands.push(list(self.call_elements()?));
            self.expect_sign(",")?;
        } else {
            operands.push(list(Vec::new()));
        }
        operands.push(self.operand(false)?);
        let mut arguments = Vec::new();
        let mut last = None;
        while self.accept_sign(",") {
            if self.is_sign("(") && last.is_none() && arguments.is_empty() {
                arguments = self.call_elements()?;
            } else if last.is_none() {
                last = Some(self.operand(false)?);
            } else {
                return Err(self.unexpected());
            }
        }
        operands.push(list(arguments));
        operands.extend(last);
        Ok(operands)
    }

    /// `(a, b)`: each element is a whole register or variable, a number or `_`.
    fn call_elements(&mut self) -> Parse<Vec<Operand>> {
        let mut at = 1;
        let mut first = true;
        loop {
            self.foresee(at + 1);
            let (token, behind) = (self.peek_ahead(at), self.peek_ahead(at + 1));
            let number = self.text(token) == "WARP_SZ";
            let stray = token.tok == Tok::Ident && first && !number && !matches!(self.text(behind), "," | ")");
            let negated = first && self.text(token) == "!" && behind.tok == Tok::Ident;
            if stray || negated {
                self.at += at + 1;
                return Err(self.unexpected());
            }
            match self.text(token) {
                _ if token.tok == Tok::End => break,
                ")" | ";" | "{" | "[" => break,
                text => first = text == ",",
            }
            at += 1;
        }
        self.elements("(", ")")
    }

    /// Checks the rules of a call that the rows cannot express.
    pub fn check_call(&mut self, pos: Pos, operands: &[Operand]) -> Parse<()> {
        let [results, callee, arguments, rest @ ..] = operands else {
            return Err(self.error(pos, "Arguments mismatch for instruction 'call'"));
        };
        let (OperandKind::List(results), OperandKind::List(arguments)) = (&results.kind, &arguments.kind) else {
            return Err(self.error(pos, "Arguments mismatch for instruction 'call'"));
        };
        let formals = match callee.kind {
            OperandKind::Symbol { symbol, offset: 0, .. } => match self.module.symbols[symbol].kind {
                SymbolKind::Function(id) if !self.module.functions[id].is_entry => {
                    let formals = self.formals_of(id);
                    self.check_counts(callee.pos, &formals, (results.len(), arguments.len()))?;
                    formals
                }
                _ => return Err(self.error(callee.pos, "Illegal call target, device function expected")),
            },
            OperandKind::Register(used) => {
                self.check_target_register(callee.pos, used.register)?;
                match rest.first().map(|o| &o.kind) {
                    Some(OperandKind::Symbol { symbol, .. }) => match &self.module.symbols[*symbol].kind {
                        SymbolKind::Prototype(p) => {
                            let formals = Self::formals_of_prototype(p);
                            self.check_counts(callee.pos, &formals, (results.len(), arguments.len()))?;
                            formals
                        }
                        SymbolKind::CallTargets(list) => match self.first_target(list) {
                            Some(id) => {
                                let formals = self.formals_of(id);
                                self.check_counts(callee.pos, &formals, (results.len(), arguments.len()))?;
                                formals
                            }
                            None => return Ok(()),
                        },
                        _ => return Err(self.error(rest[0].pos, "Call prototype or list of targets expected")),
                    },
                    _ => return Err(self.error(callee.pos, "Indirect call requires call prototype")),
                }
            }
            _ => return Err(self.error(callee.pos, "Illegal call target, device function expected")),
        };
        self.check_own(results);
        self.check_own(arguments);
        self.check_passed(results, &formals.results);
        self.check_arguments(arguments, &formals.params);
        self.check_passed(arguments, &formals.params);
        Ok(())
    }

    /// Checks the register of an indirect call: it must be able to hold an address. The errors are
    /// those of ptxas.
    fn check_target_register(&mut self, pos: Pos, register: RegId) -> Parse<()> {
        let ty = self.body.registers[register].ty;
        let whole = matches!(ty.class(), TypeClass::Bits | TypeClass::Signed | TypeClass::Unsigned);
        match ty.bits() {
            32 | 64 if whole => Ok(()),
            8 | 16 if whole => Err(self.error(pos, "Illegal target for instruction 'call'")),
            _ => Err(self.error(pos, "Arguments mismatch for instruction 'call'")),
        }
    }

    /// The first function of a list of targets.
    fn first_target(&self, list: &[SymbolId]) -> Option<FunctionId> {
        match self.module.symbols[*list.first()?].kind {
            SymbolKind::Function(id) => Some(id),
            _ => None,
        }
    }

    /// Compares the numbers of results and parameters with the numbers passed.
    /// The argument of an array of unknown extent, which is the last parameter, may be missing.
    fn check_counts(&mut self, pos: Pos, formals: &Formals, passed: (usize, usize)) -> Parse<()> {
        let least = formals.params.len() - usize::from(formals.params.last().is_some_and(Formal::is_open));
        if formals.results.len() != passed.0 || !(least..=formals.params.len()).contains(&passed.1) {
            return Err(self.error(pos, "Call has wrong number of parameters"));
        }
        Ok(())
    }
}

/// An operation whose last name part is separated from the rest: `match.any.sync`.
struct Free {
    op: Op,
    /// The whole name.
    spelt: &'static str,
    /// Number of suffixes that belong to the name before the last part.
    taken: usize,
    /// Index of the last part among the suffixes.
    last: usize,
}

/// The first suffix that completes a name starting with `stem`, which includes `taken` suffixes.
fn free_name(stem: &str, taken: usize, suffixes: &[Suffix]) -> Option<Free> {
    let names = FREE_NAMES.get(stem)?;
    suffixes.iter().enumerate().skip(taken).find_map(|(last, suffix)| {
        let free = names.iter().find(|free| free.last == suffix.0)?;
        Some(Free { op: free.op, spelt: free.name, taken, last })
    })
}

/// Whether a modifier may be repeated without effect.
fn repeats(text: &str) -> bool {
    MODIFIER_BY_TEXT.get(text).is_some_and(|places| places.iter().all(|(g, i)| g.info().again >> i & 1 != 0))
}

/// Bit set of the operand positions that are labels.
fn label_places(op: Op) -> u32 {
    let places = op.forms().flat_map(|(_, form)| form.args.iter().enumerate());
    places.filter(|(_, arg)| arg.role == Role::Label).fold(0, |bits, (i, _)| bits | 1 << i.min(31))
}
