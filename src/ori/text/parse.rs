//! The parser.

use super::FILES;
use crate::ori::bank_constants::BankConstants;
use crate::ori::function::{
    Block, ControlWord, Convention, File, Function, InstId, Listed, RegData, STACK_POINTER, Symbol, VReg,
};
use crate::ori::operand::Operand;
use crate::ori::shader_constants::ShaderConstants;
use crate::tables::elf::RelocRole;
use crate::tables::registers::Changes;
use crate::tables::{Mod, Op, Role, Target};

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
        ".driver" => Symbol::Driver,
        ".zero" => Symbol::Zero,
        ".frame" => Symbol::FrameSize,
        ".return.lo" | ".return.hi" => Symbol::Return { high: word.ends_with("hi") },
        ".distance.lo" | ".distance.hi" => Symbol::Distance { high: word.ends_with("hi") },
        name => match name.strip_prefix(".slow.").and_then(|id| id.parse().ok()) {
            Some(id) => Symbol::SlowPath(id),
            None => Symbol::Function(name.to_string()),
        },
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
    words[3..].iter().try_for_each(|word| parser.attribute(word)).map_err(|e| format!("line 1: {e}"))?;
    let mut block = None;
    for (number, line) in lines {
        let at = |e: String| format!("line {}: {e}", number + 1);
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("phys ") {
            rest.split_whitespace().try_for_each(|w| parser.reserve(w, |d, n| d.phys = Some(n))).map_err(at)?;
            let points = |data: &RegData| data.file == File::R && data.phys == Some(STACK_POINTER);
            let function = &mut parser.function;
            let pointer = function.regs().keys().find(|reg| points(&function[*reg]));
            function.set_stack_pointer(pointer);
        } else if let Some(rest) = line.strip_prefix("fixed ") {
            rest.split_whitespace().try_for_each(|w| parser.reserve(w, |d, n| d.fixed = Some(n))).map_err(at)?;
        } else if let Some(rest) = line.strip_prefix("uniform ") {
            rest.split_whitespace().try_for_each(|w| parser.uniform(w)).map_err(at)?;
        } else if let Some(rest) = line.strip_prefix("rolled ") {
            let blocks: Result<Vec<Block>, String> = rest.split_whitespace().map(block_of).collect();
            parser.function.attributes_mut().rolled.blocks = blocks.map_err(at)?;
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

/// `NAME:WORDS:WORDS:WORDS:WORDS:COUNT`: what a private function changes, the highest general
/// registers first.
fn changes(list: &str) -> Option<(String, Changes)> {
    let mut parts = list.split(':');
    let name = parts.next()?.to_string();
    let mut words = [0; 4];
    for word in words.iter_mut().rev() {
        *word = u64::from_str_radix(parts.next()?, 16).ok()?;
    }
    let uniform = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((name, Changes { general: words, uniform }))
}

/// `START:MOST,VALUE,VALUE`: what the code reads from the compiler's constant bank.
fn constants(list: &str) -> Option<BankConstants> {
    let (start, rest) = list.split_once(',').unwrap_or((list, ""));
    let values = rest.split(',').filter(|text| !text.is_empty());
    let values = values.map(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    let (start, most) = start.split_once(':')?;
    let (start, most) = (start.parse().ok()?, most.parse().ok()?);
    Some(BankConstants { start, most, values: values.collect::<Option<_>>()? })
}

fn block_of(label: &str) -> Result<Block, String> {
    match numbered(label) {
        Some(("b", n)) => Ok(Block::from_u32(n)),
        _ => Err(format!("`{label}` is not a block")),
    }
}

impl Parser {
    /// Creates all registers and blocks that the text names, so that they keep their numbers.
    fn declare(&mut self, text: &str) -> Result<(), String> {
        let mut files: Vec<Option<File>> = Vec::new();
        let body: Vec<&str> = text.lines().skip(1).collect();
        let mut blocks = 0;
        for line in &body {
            let line = line.split(" ; ").next().unwrap_or(line);
            // Symbols have names of their own.
            let words = line.split_whitespace().filter(|word| !word.contains('$'));
            for word in words.flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric())) {
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
            self.function.new_unplaced_block(Vec::new());
        });
        Ok(())
    }

    fn block(&mut self, label: &str) -> Result<Block, String> {
        let block = block_of(label)?;
        self.function.place_blocks([block]);
        Ok(block)
    }

    fn reserve(&mut self, word: &str, set: impl Fn(&mut RegData, u16)) -> Result<(), String> {
        let (name, number) = word.split_once('=').ok_or_else(|| format!("`{word}` is not REGISTER=NUMBER"))?;
        let reg = self.reg(name)?;
        let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
        set(&mut self.function[reg], number);
        Ok(())
    }

    /// A word of the first line behind the target.
    fn attribute(&mut self, word: &str) -> Result<(), String> {
        let function = &mut self.function;
        let unknown = || format!("`{word}` is no attribute of a function");
        if let Some(list) = word.strip_prefix("changes=") {
            let (name, changes) = changes(list).ok_or_else(unknown)?;
            function.attributes_mut().private_callees.insert(name, changes);
            return Ok(());
        }
        if let Some(list) = word.strip_prefix("constants=") {
            function.attributes_mut().constants = Some(constants(list).ok_or_else(unknown)?);
            return Ok(());
        }
        if let Some(list) = word.strip_prefix("patched=") {
            let patched = ShaderConstants::parse(list).ok_or_else(unknown)?;
            function.attributes_mut().shader_constants = Some(patched);
            return Ok(());
        }
        if let Some(list) = word.strip_prefix("tuned=") {
            let tuning = &mut function.attributes_mut().tuning;
            return list.split(',').try_for_each(|one| tuning.set(one));
        }
        if let Some((name, number)) = word.split_once('=') {
            let number: u32 = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
            match name {
                "max" => function.attributes_mut().max_registers = Some(number),
                "entry" => function.attributes_mut().entry_registers = Some(number),
                "threads" => function.attributes_mut().threads = Some(number),
                "local" => function.attributes_mut().local_bytes = number,
                "frame" => function.attributes_mut().frame_bytes = number,
                "below" => function.attributes_mut().below_stack = number,
                "stored" => function.attributes_mut().spill_stores = number,
                "loaded" => function.attributes_mut().spill_loads = number,
                "barriers" => function.attributes_mut().barriers = number,
                "progress" => function.stage_mut().progress = number.try_into().map_err(|_| unknown())?,
                _ => return Err(unknown()),
            }
            return Ok(());
        }
        match word {
            "device" => function.attributes_mut().convention = Convention::Device,
            "slow" => function.attributes_mut().convention = Convention::SlowPath,
            "calling" => function.attributes_mut().slow_paths = true,
            "rolled" => function.attributes_mut().rolled.all = true,
            "rows" => function.attributes_mut().rows = true,
            "private" => function.attributes_mut().private = true,
            "ssa" => function.set_ssa(true),
            "plain" => function.attributes_mut().optimise = false,
            "checked" => function.attributes_mut().checks_stack = true,
            "converted" => function.stage_mut().converted = true,
            "unsupported" => function.stage_mut().unsupported = true,
            "legalized" => function.stage_mut().legalized = true,
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn uniform(&mut self, word: &str) -> Result<(), String> {
        let reg = self.reg(word)?;
        self.function[reg].varying = false;
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
        let (rest, ctrl) = control_word(rest)?;
        let (rest, above) = rest.strip_suffix(" above").map_or((rest, false), |rest| (rest, true));
        let (rest, listed) = match rest.rsplit_once(" listed=") {
            Some((rest, text)) => (rest, listed(text)?),
            None => (rest, Listed::No),
        };
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
        let data = &mut self.function[inst];
        (data.mods, data.guard, data.line) = (mods, guard, number);
        (data.contract, data.ordered) = (contract, ordered);
        (data.listed, data.ctrl) = (listed, ctrl);
        if above {
            self.function.above_frame_mut().push(inst);
        }
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
                return Err(format!("{} has no role `{}`", crate::tables::ori::op_name(op), role.name()));
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

/// Splits off the control word at the end of a line.
fn control_word(line: &str) -> Result<(&str, ControlWord), String> {
    let mut ctrl = ControlWord::default();
    let Some((rest, words)) = line.rsplit_once(" ctrl(") else { return Ok((line, ctrl)) };
    let words = words.strip_suffix(')').ok_or("no ) behind the control word")?;
    for word in words.split_whitespace() {
        if word == "stay" {
            ctrl.stay = true;
            continue;
        }
        let (name, number) = word.split_once('=').ok_or_else(|| format!("`{word}` is not NAME=NUMBER"))?;
        let field = match name {
            "stall" => &mut ctrl.stall,
            "write" => &mut ctrl.write_bar,
            "read" => &mut ctrl.read_bar,
            "wait" => &mut ctrl.wait,
            _ => return Err(format!("a control word has no `{name}`")),
        };
        *field = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    }
    Ok((rest, ctrl))
}

/// How the cubin lists an instruction.
fn listed(text: &str) -> Result<Listed, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a number"));
    match text {
        "program" => Ok(Listed::Program),
        _ => match (text.strip_prefix("barrier"), text.strip_prefix("values")) {
            (Some(kind), _) => number(kind).map(Listed::Barrier),
            (_, Some(words)) => number(words).map(Listed::Values),
            _ => Err(format!("`{text}` is no way to be listed")),
        },
    }
}

fn modifier(kind: &str, value: &str) -> Result<(Mod, u8), String> {
    let kind = Mod::ALL.into_iter().find(|k| k.name() == kind).ok_or_else(|| format!("no modifier `{kind}`"))?;
    let texts = crate::tables::ori::MOD_TEXTS[kind as usize];
    let value = texts.iter().position(|t| *t == value).ok_or_else(|| format!("{} has no `{value}`", kind.name()))?;
    Ok((kind, value as u8))
}
