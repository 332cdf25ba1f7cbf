//! The text form of Ori: printer and parser.
//!
//! One line per instruction: `@!p3 IADD3{x=X} d=r5 pu=p2 a=-r3 b=0x10 old(r1) ; 12`. A register is
//! its file and number (`r`, `u`, `p`, `q` for UP, `cb` for a convergence barrier), a tuple
//! `{r1,r2}`, the hard-wired register `Z`, a label a block, a special register `s33`, a constant
//! `c[0][0x160]`. The parser restores the instructions, registers and blocks that the printer
//! wrote. Control words, frame sizes and the stage of the function are not printed; the parser also
//! accepts `max=`, `entry=` and `local=` in the first line.

use super::function::{Block, Convention, File, Function, InstId, RegData, STACK_POINTER, Symbol, VReg};
use super::operand::{Kind, Operand};
use crate::tables::elf::RelocRole;
use crate::tables::{Mod, Op, Role, Target};
use cranelift_entity::EntityRef;
use std::fmt::Write;

const FILES: [(File, &str); 6] =
    [(File::R, "r"), (File::UR, "u"), (File::P, "p"), (File::UP, "q"), (File::B, "cb"), (File::UB, "ucb")];

/// Prints a function.
pub fn print(function: &Function) -> String {
    let device = if function.convention == Convention::Device { " device" } else { "" };
    let ssa = if function.ssa { " ssa" } else { "" };
    let mut out = format!("function {} {}{device}{ssa}\n", function.name, function.target.name);
    let reserved: Vec<VReg> = function.regs.keys().filter(|r| function.regs[*r].phys.is_some()).collect();
    if !reserved.is_empty() {
        out.push_str("phys");
        for reg in reserved {
            let _ = write!(out, " {}={}", reg_name(function, reg), function.regs[reg].phys.unwrap_or(0));
        }
        out.push('\n');
    }
    let fixed: Vec<VReg> = function.regs.keys().filter(|r| function.regs[*r].fixed.is_some()).collect();
    if !fixed.is_empty() && function.regs.values().any(|r| r.fixed.is_some() && r.phys.is_none()) {
        out.push_str("fixed");
        for reg in fixed {
            let _ = write!(out, " {}={}", reg_name(function, reg), function.regs[reg].fixed.unwrap_or(0));
        }
        out.push('\n');
    }
    for block in &function.layout {
        let _ = writeln!(out, "{block}:");
        for inst in &function.blocks[*block] {
            let _ = writeln!(out, "  {}", instruction(function, *inst));
        }
    }
    out
}

fn reg_name(function: &Function, reg: VReg) -> String {
    let file = function.regs[reg].file;
    let prefix = FILES.iter().find(|f| f.0 == file).map_or("?", |f| f.1);
    format!("{prefix}{}", reg.index())
}

/// Prints one instruction.
pub fn instruction(function: &Function, inst: InstId) -> String {
    let data = &function.insts[inst];
    let mut out = String::new();
    if !data.guard.is_null() {
        let _ = write!(out, "@{} ", operand(function, data.guard));
    }
    out.push_str(op_name(data.op));
    let mods: Vec<String> = data.mods.iter().map(|(k, v)| format!("{}={}", k.name(), k.text(v))).collect();
    if !mods.is_empty() {
        let _ = write!(out, "{{{}}}", mods.join(" "));
    }
    let args = function.args(inst);
    if data.op == Op::PHI {
        let _ = write!(out, " d={}", operand(function, args[0]));
        for pair in args[1..].chunks_exact(2) {
            let _ = write!(out, " {}={}", operand(function, pair[0]), operand(function, pair[1]));
        }
    } else {
        for (role, arg) in data.op.info().roles.iter().zip(args).filter(|(_, a)| !a.is_null()) {
            let _ = write!(out, " {}={}", role.role.name(), operand(function, *arg));
        }
    }
    let olds: Vec<String> = function.olds(inst).iter().map(|o| operand(function, *o)).collect();
    if !olds.is_empty() {
        let _ = write!(out, " old({})", olds.join(" "));
    }
    let (uses, defs) = function.extras(inst);
    for (name, list) in [("in", uses), ("out", defs)].into_iter().filter(|e| !e.1.is_empty()) {
        let list: Vec<String> = list.iter().map(|o| operand(function, *o)).collect();
        let _ = write!(out, " {name}({})", list.join(" "));
    }
    if data.contract {
        out.push_str(" contract");
    }
    if data.ordered {
        out.push_str(" ordered");
    }
    if data.line != 0 {
        let _ = write!(out, " ; {}", data.line);
    }
    out
}

/// The opcode's name in the tables.
fn op_name(op: Op) -> &'static str {
    crate::tables::ori::op_name(op)
}

fn operand(function: &Function, operand: Operand) -> String {
    let body = match operand.kind() {
        Kind::Null => "_".to_string(),
        Kind::Reg(reg) => reg_name(function, reg),
        Kind::Vector(v) => {
            let names: Vec<String> = function.vector_regs(v).iter().map(|r| reg_name(function, *r)).collect();
            format!("{{{}}}", names.join(","))
        }
        Kind::Imm(_) => format!("{:#x}", function.imm_value(operand).unwrap_or(0)),
        Kind::Const { bank, offset } => format!("c[{bank}][{offset:#x}]"),
        Kind::Label(block) => block.to_string(),
        Kind::Symbol(_) => symbol(function, operand),
        Kind::Special(n) => format!("s{n}"),
        Kind::Zero => "Z".to_string(),
    };
    let sign = if operand.neg() { "-" } else { "" };
    let not = if operand.not() { "!" } else { "" };
    let abs = if operand.abs() { "|" } else { "" };
    format!("{sign}{not}{abs}{body}{abs}")
}

/// `$.start`, `$.zero`, `$.frame`, `$.return.lo`, `$.distance.hi`, `$NAME`, `$!ROLE:ADDEND:NAME`.
fn symbol(function: &Function, operand: Operand) -> String {
    let half = |high: bool| if high { "hi" } else { "lo" };
    match function.symbol_of(operand) {
        Some(Symbol::Start) => "$.start".to_string(),
        Some(Symbol::Zero) => "$.zero".to_string(),
        Some(Symbol::FrameSize) => "$.frame".to_string(),
        Some(Symbol::Return { high }) => format!("$.return.{}", half(*high)),
        Some(Symbol::Distance { high }) => format!("$.distance.{}", half(*high)),
        Some(Symbol::Function(name)) => format!("${name}"),
        Some(Symbol::Linked { role, name, addend }) => format!("$!{}:{addend}:{name}", role.name()),
        None => "$?".to_string(),
    }
}

fn linked_from(word: &str) -> Option<Symbol> {
    let mut parts = word.strip_prefix('!')?.splitn(3, ':');
    let (role, addend, name) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.to_string());
    let role = RelocRole::ALL.into_iter().find(|r| r.name() == role)?;
    Some(Symbol::Linked { role, name, addend })
}

fn symbol_from(word: &str) -> Symbol {
    if let Some(linked) = linked_from(word) {
        return linked;
    }
    match word {
        ".start" => Symbol::Start,
        ".zero" => Symbol::Zero,
        ".frame" => Symbol::FrameSize,
        ".return.lo" | ".return.hi" => Symbol::Return { high: word.ends_with("hi") },
        ".distance.lo" | ".distance.hi" => Symbol::Distance { high: word.ends_with("hi") },
        name => Symbol::Function(name.to_string()),
    }
}

/// Parses the text form.
///
/// # Errors
///
/// The first line that cannot be parsed, with its number.
pub fn parse(text: &str) -> Result<Function, String> {
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let (_, head) = lines.next().ok_or("empty text")?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let (name, target) = match words.as_slice() {
        ["function", name, target, ..] => (*name, *target),
        _ => return Err("line 1: not `function NAME TARGET`".into()),
    };
    let target = Target::by_name(target).ok_or_else(|| format!("line 1: no target is called `{target}`"))?;
    let mut parser = Parser { function: Function::new(name, target) };
    parser.declare(text)?;
    parser.function.ssa = words.contains(&"ssa");
    if words.contains(&"device") {
        parser.function.convention = Convention::Device;
    }
    for word in &words {
        let number = |prefix| word.strip_prefix(prefix).and_then(|n: &str| n.parse().ok());
        parser.function.max_registers = number("max=").or(parser.function.max_registers);
        parser.function.entry_registers = number("entry=").or(parser.function.entry_registers);
        parser.function.local_bytes = number("local=").unwrap_or(parser.function.local_bytes);
    }
    let mut block = None;
    for (number, line) in lines {
        let at = |e: String| format!("line {}: {e}", number + 1);
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("phys ") {
            rest.split_whitespace().try_for_each(|w| parser.reserve(w, |d, n| d.phys = Some(n))).map_err(at)?;
            let points = |data: &RegData| data.file == File::R && data.phys == Some(STACK_POINTER);
            let function = &mut parser.function;
            function.stack_pointer = function.regs.iter().find(|(_, data)| points(data)).map(|(reg, _)| reg);
        } else if let Some(rest) = line.strip_prefix("fixed ") {
            rest.split_whitespace().try_for_each(|w| parser.reserve(w, |d, n| d.fixed = Some(n))).map_err(at)?;
        } else if let Some(label) = line.strip_suffix(':') {
            block = Some(parser.block(label).map_err(at)?);
        } else {
            let inst = parser.instruction(line).map_err(at)?;
            let block = block.ok_or_else(|| at("instruction before the first block".into()))?;
            parser.function.append(block, inst);
        }
    }
    Ok(parser.function)
}

struct Parser {
    function: Function,
}

/// Splits a name into its letters and its number.
fn numbered(word: &str) -> Option<(&str, u32)> {
    let at = word.find(|c: char| c.is_ascii_digit())?;
    Some((&word[..at], word[at..].parse().ok()?))
}

impl Parser {
    /// Creates all registers and blocks that the text names, so that they keep their numbers.
    fn declare(&mut self, text: &str) -> Result<(), String> {
        let mut files: Vec<Option<File>> = Vec::new();
        let body: Vec<&str> = text.lines().skip(1).collect();
        let mut blocks = 0;
        for line in &body {
            let line = line.split(" ; ").next().unwrap_or(line);
            for word in line.split(|c: char| !c.is_ascii_alphanumeric()) {
                let Some((prefix, number)) = numbered(word) else { continue };
                if number > 0xff_ffff {
                    continue;
                }
                if let Some((file, _)) = FILES.iter().find(|f| f.1 == prefix) {
                    let index = number as usize;
                    files.resize(files.len().max(index + 1), None);
                    files[index] = Some(*file);
                } else if prefix == "b" {
                    blocks = blocks.max(number + 1);
                }
            }
        }
        for file in files {
            self.function.new_reg(file.unwrap_or(File::R));
        }
        (0..blocks).for_each(|_| {
            self.function.blocks.push(Vec::new());
        });
        Ok(())
    }

    fn block(&mut self, label: &str) -> Result<Block, String> {
        let block = match numbered(label) {
            Some(("b", n)) => Block::from_u32(n),
            _ => return Err(format!("`{label}` is not a block")),
        };
        self.function.layout.push(block);
        Ok(block)
    }

    fn reserve(&mut self, word: &str, set: impl Fn(&mut RegData, u16)) -> Result<(), String> {
        let (name, number) = word.split_once('=').ok_or_else(|| format!("`{word}` is not REGISTER=NUMBER"))?;
        let reg = self.reg(name)?;
        let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
        set(&mut self.function.regs[reg], number);
        Ok(())
    }

    fn reg(&self, word: &str) -> Result<VReg, String> {
        match numbered(word) {
            Some((prefix, n)) if FILES.iter().any(|f| f.1 == prefix) => Ok(VReg::from_u32(n)),
            _ => Err(format!("`{word}` is not a register")),
        }
    }

    fn instruction(&mut self, line: &str) -> Result<InstId, String> {
        let (line, number) = match line.split_once(" ; ") {
            Some((line, n)) => (line, n.trim().parse().map_err(|_| format!("`{n}` is not a line number"))?),
            None => (line, 0),
        };
        let (guard, rest) = match line.strip_prefix('@') {
            Some(rest) => {
                let (guard, rest) = rest.split_once(' ').ok_or("nothing behind the guard")?;
                (self.operand(guard)?, rest)
            }
            None => (Operand::NULL, line),
        };
        let end = rest.find(['{', ' ']).unwrap_or(rest.len());
        let op = Op::by_name(&rest[..end]).ok_or_else(|| format!("no opcode is called `{}`", &rest[..end]))?;
        let mut rest = &rest[end..];
        let mut mods = crate::tables::Mods::default();
        if let Some(inner) = rest.strip_prefix('{') {
            let (list, after) = inner.split_once('}').ok_or("no } behind the modifiers")?;
            for word in list.split_whitespace() {
                let (kind, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not KIND=VALUE"))?;
                let (kind, value) = modifier(kind, value)?;
                mods.set(kind, value);
            }
            rest = after;
        }
        let (rest, ordered) = rest.strip_suffix(" ordered").map_or((rest, false), |rest| (rest, true));
        let (rest, contract) = rest.strip_suffix(" contract").map_or((rest, false), |rest| (rest, true));
        let (rest, defs) = self.list(rest, " out(")?;
        let (rest, uses) = self.list(rest, " in(")?;
        let (rest, olds) = self.list(rest, " old(")?;
        let inst = self.arguments(op, rest)?;
        if !uses.is_empty() || !defs.is_empty() {
            self.function.set_extras(inst, &uses, &defs);
        }
        if !olds.is_empty() {
            self.function.set_olds(inst, &olds);
        }
        let data = &mut self.function.insts[inst];
        (data.mods, data.guard, data.line) = (mods, guard, number);
        (data.contract, data.ordered) = (contract, ordered);
        Ok(inst)
    }

    /// Splits off the parenthesized operands that follow a word at the end of a line; returns the
    /// line without them.
    fn list<'t>(&mut self, rest: &'t str, word: &str) -> Result<(&'t str, Vec<Operand>), String> {
        let Some((rest, list)) = rest.split_once(word) else { return Ok((rest, Vec::new())) };
        let list = list.strip_suffix(')').ok_or_else(|| format!("no ) behind{word}"))?;
        let operands = list.split_whitespace().map(|w| self.operand(w)).collect::<Result<_, _>>()?;
        Ok((rest, operands))
    }

    fn arguments(&mut self, op: Op, text: &str) -> Result<InstId, String> {
        let mut phi = Vec::new();
        let mut named = Vec::new();
        for word in text.split_whitespace() {
            let (role, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not ROLE=OPERAND"))?;
            let value = self.operand(value)?;
            if op == Op::PHI && role != "d" {
                phi.extend([self.operand(role)?, value]);
            } else {
                let role =
                    Role::ALL.into_iter().find(|r| r.name() == role).ok_or_else(|| format!("no role `{role}`"))?;
                named.push((role, value));
            }
        }
        if op == Op::PHI {
            let result = named.first().map_or(Operand::NULL, |n| n.1);
            phi.insert(0, result);
            return Ok(self.function.make_with(op, &phi));
        }
        let inst = self.function.make(op);
        for (role, value) in named {
            if op.role_index(role).is_none() {
                return Err(format!("{} has no role `{}`", op_name(op), role.name()));
            }
            self.function.set_arg(inst, role, value);
        }
        Ok(inst)
    }

    fn operand(&mut self, word: &str) -> Result<Operand, String> {
        if let Some(rest) = word.strip_prefix('-') {
            return Ok(self.operand(rest)?.negated());
        }
        if let Some(rest) = word.strip_prefix('!') {
            return Ok(self.operand(rest)?.inverted());
        }
        if let Some(rest) = word.strip_prefix('|') {
            return Ok(self.operand(rest.trim_end_matches('|'))?.absolute());
        }
        if let Some(list) = word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
            let regs: Vec<VReg> = list.split(',').map(|w| self.reg(w)).collect::<Result<_, _>>()?;
            return Ok(Operand::vector(self.function.vector(&regs)));
        }
        if let Some(hex) = word.strip_prefix("0x") {
            let bits = u64::from_str_radix(hex, 16).map_err(|_| format!("`{word}` is not a number"))?;
            return Ok(self.function.imm(bits));
        }
        if let Some(rest) = word.strip_prefix('$') {
            return Ok(self.function.symbol(symbol_from(rest)));
        }
        if let Some(rest) = word.strip_prefix("c[") {
            let parts = rest.strip_suffix(']').and_then(|r| r.split_once("][0x"));
            let parsed = parts.and_then(|(b, o)| Some((b.parse().ok()?, u16::from_str_radix(o, 16).ok()?)));
            return parsed.map(|(b, o)| Operand::constant(b, o)).ok_or_else(|| format!("`{word}` is not a constant"));
        }
        match (word, numbered(word)) {
            ("Z", _) => Ok(Operand::zero()),
            ("_", _) => Ok(Operand::NULL),
            (_, Some(("b", n))) => Ok(Operand::label(Block::from_u32(n))),
            (_, Some(("s", n))) => Ok(Operand::special(n)),
            _ => Ok(Operand::reg(self.reg(word)?)),
        }
    }
}

fn modifier(kind: &str, value: &str) -> Result<(Mod, u8), String> {
    let kind = Mod::ALL.into_iter().find(|k| k.name() == kind).ok_or_else(|| format!("no modifier `{kind}`"))?;
    let texts = crate::tables::ori::MOD_TEXTS[kind as usize];
    let value = texts.iter().position(|t| *t == value).ok_or_else(|| format!("{} has no `{value}`", kind.name()))?;
    Ok((kind, value as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "function k sm_90 ssa
phys u3=4 u4=5
b0:
  UNDEF d=r9
  LDC d=r0 c=c[0][0x210]
  ISETP{cmp=LT} pu=p1 a=r0 b=0xffffffff
  @!p1 BRA target=b2 ; 7
  BRA target=b1
b1:
  @p1 IADD3 d=r2 a=-r0 b=0x10 c=Z pp=!Z old(r9)
  LDG{size=64 e=E} d={r5,r6} a={r0,r2} desc={u3,u4} off=0x0
  BRA target=b2
b2:
  PHI d=r7 b0=r0 b1=r2
  EXIT
";

    #[test]
    fn text_round_trips() {
        let function = parse(TEXT).unwrap();
        assert_eq!(print(&function), TEXT);
        assert_eq!(super::super::verify::verify(&function), Vec::<String>::new());
    }

    #[test]
    fn errors_name_the_line() {
        let wrong = TEXT.replace("UNDEF", "UNDEAF");
        assert_eq!(parse(&wrong).err().unwrap(), "line 4: no opcode is called `UNDEAF`");
    }
}
