//! Parses the output of nvdisasm into instructions: a decoder that shares no table row with ours.
//!
//! From the output of `nvdisasm -c` it makes one instruction per 16 bytes for each kernel. An
//! instruction that cannot be parsed is an error with its text.

use sassafras::sass::{Arg, ArgKind, Inst};
use sassafras::sim::sass::predecode::Lifted;
use sassafras::sim::sass::words::Words;
use sassafras::tables::ori::{Absent, Class, RoleInfo};
use sassafras::tables::{Mod, Op, Role};
use std::collections::HashMap;

type Code = Vec<Result<Lifted, String>>;

/// All functions of a listing by section name.
pub fn functions(listing: &str) -> HashMap<String, Code> {
    let mut all = HashMap::new();
    for section in listing.split("//--------------------- .text.").skip(1) {
        let name = section.split_whitespace().next().unwrap_or_default();
        all.insert(name.to_string(), function(section));
    }
    all
}

/// Code lines of a function, and the offsets of its labels.
fn function(section: &str) -> Code {
    let mut labels = HashMap::new();
    let mut lines = Vec::new();
    for line in section.lines() {
        let text = line.trim();
        if let Some(label) = text.strip_suffix(':') {
            labels.insert(label.to_string(), lines.len() as u64 * 16);
        } else if let Some(rest) = text.strip_prefix("/*").and_then(|t| t.split_once("*/")).map(|(_, rest)| rest) {
            let rest = rest.split("(*").next().unwrap_or(rest);
            lines.push(rest.trim().trim_end_matches(';').trim().to_string());
        }
    }
    let lifted = |(i, text): (usize, &String)| {
        lift(text, i as u64 * 16 + 16, &labels).map_err(|why| format!("{why} in `{text}`"))
    };
    lines.iter().enumerate().map(lifted).collect()
}

/// Masks of lanes that BMOV reads and writes.
const STATES: [&str; 2] = ["MEXITED", "MACTIVE"];

fn lift(text: &str, next: u64, labels: &HashMap<String, u64>) -> Result<Lifted, String> {
    let text = text.replace(".reuse", "");
    let (guard, rest) = match text.strip_prefix('@') {
        Some(rest) => rest.split_once(' ').ok_or("a guard alone")?,
        None => ("", text.as_str()),
    };
    let rest = rest.trim();
    let (mnemonic, operands) = rest.split_once(' ').unwrap_or((rest, ""));
    let (op, words) = opcode(mnemonic, operands)?;
    let mut lifted = Lifted { inst: Inst::new(op), words, special: String::new() };
    if !guard.is_empty() {
        let arg = predicate(guard).ok_or("a guard")?;
        lifted.inst.guard.pred = arg.val as u8;
        lifted.inst.guard.not = arg.not;
        lifted.inst.guard.upred = arg.kind == ArgKind::UPred;
    }
    let mut reader = Reader { lifted, next, labels };
    // This form of PLOP3 reads only the sign of a register.
    let operands: Vec<String> = split(&operands.replace(".SIGN", ""));
    reader.assign(&operands)?;
    Ok(reader.lifted)
}

/// The opcode of a mnemonic, and the remaining words.
fn opcode(mnemonic: &str, operands: &str) -> Result<(Op, Words), String> {
    let parts: Vec<&str> = mnemonic.split('.').collect();
    let wide = format!("{}_64", parts[0]);
    let sparse = format!("{}_SP", parts[0]);
    let second = parts.get(1).copied().unwrap_or_default();
    let barrier_word = format!("SYNCS_{second}");
    let [first, last] =
        [operands.split(',').next(), operands.split(',').next_back()].map(|o| o.unwrap_or_default().trim());
    let fence = format!("FENCE_{}", parts[parts.len() - 1]);
    let name = match parts[0] {
        "HMMA" | "IMMA" | "QMMA" if parts.contains(&"SP") => sparse.as_str(),
        "HMMA" if parts.contains(&"884") => "HMMA_884",
        "REDG" => "RED",
        "UMEMSETS" => "MEMSET",
        "UTMASTG" => "UTMALST",
        "UTMAREDG" => "UTMREDG",
        "UTCHMMA" | "UTCIMMA" | "UTCQMMA" | "UTCOMMA" => "UTCMMA_1CTA",
        "UTCBAR" => "UTCBAR_1CTA",
        "UTCCP" => "UTCCP_1CTA",
        "UTCSHIFT" => "UTCSHIFT_1CTA",
        "UTCATOMSWS" => "TCATOMSWS",
        "UVIRTCOUNT" => "VIRTCOUNT",
        "USETMAXREG" => "SETMAXREG",
        "UCGABAR_ARV" => "CGABAR_ARV",
        "UCGABAR_WAIT" => "CGABAR_WAIT",
        "ATOMS" if second == "ARRIVE" => "ATOMS_ARRIVE",
        "SYNCS" | "USYNCS" if second == "CCTL" && operands.is_empty() => "SYNCS_CCTL_ALL",
        "USYNCS" if parts.contains(&"MULTICAST") => "USYNCS_ARRIVE",
        "SYNCS" | "USYNCS" => barrier_word.as_str(),
        "FENCE" => fence.as_str(),
        "UBLKL2CCTL" => "UBLKPF",
        "UTMAL2CCTL" => "UTMAPF",
        "PLOP3" if operands.contains(".SIGN") => "PLOP3_SIGN",
        "BMOV" if STATES.contains(&first) && is_barrier(last) => "BMOV_STATE_B",
        "BMOV" if STATES.contains(&first) => "BMOV_STATE",
        "BMOV" if STATES.contains(&last) && is_barrier(first) => "BMOV_B_STATE",
        "BMOV" if STATES.contains(&last) => "BMOV_STATE_R",
        "BMOV" if operands.trim_start().starts_with('B') => "BMOV_B",
        "BMOV" => "BMOV_R",
        "IADD" | "MOV" | "SEL" | "UMOV" | "USEL" | "UIADD3" if parts.contains(&"64") => wide.as_str(),
        "IMNMX" | "ISETP" | "UISETP" if parts.contains(&"S64") || parts.contains(&"U64") => wide.as_str(),
        "CS2R" if second == "32" => "CS2R_32",
        "CS2R" => "CS2R_64",
        other => other,
    };
    let op = Op::by_name(name).ok_or_else(|| format!("no opcode {name}"))?;
    let mut words = Words::default();
    if op == Op::UTCMMA_1CTA {
        // UTCHMMA is the plain one.
        words.push("utc_type", parts[0][3..4].trim_start_matches('H'));
    }
    for (i, part) in parts.iter().enumerate().skip(1) {
        // A conversion names the destination type before the source type.
        let float = matches!(*part, "F16" | "F32" | "F64" | "BF16") && matches!(parts[0], "F2F");
        let int = matches!(parts[0], "I2I" | "I2IP" | "F2IP");
        let bulk = matches!(parts[0], "UBLKCP" | "UBLKRED") && i <= 2;
        let kind = match (float || int, i) {
            _ if bulk => "bulk_way",
            _ if matches!(parts[0], "TEX" | "TLD" | "TLD4" | "TXD" | "TXQ") => texture_kind(&parts, i),
            _ if matches!(parts[0], "SULD" | "SUST" | "SURED") && is_shape(part) => "su_dim",
            (true, 1) => "dst",
            (true, _) => "src",
            (false, _) => "",
        };
        // `F16.RN` of a texture is one word.
        match (kind, *part, parts.get(i + 1)) {
            ("", "F16", Some(rounding)) if parts[0].starts_with('T') => {
                words.push("tex_half", &format!("F16.{rounding}"));
            }
            _ => words.push(kind, part),
        }
    }
    Ok((op, words))
}

/// Splits at commas outside of brackets.
fn split(operands: &str) -> Vec<String> {
    let (mut all, mut depth, mut current) = (Vec::new(), 0, String::new());
    // The two parts of a constant's address are printed separately before a suffix.
    for c in operands.trim().replace("] [", "][").chars() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' | ' ' if depth == 0 => {
                if current.trim().is_empty() {
                    continue;
                }
                all.push(std::mem::take(&mut current).trim().to_string());
                continue;
            }
            _ => {}
        }
        current.push(c);
    }
    if !current.trim().is_empty() {
        all.push(current.trim().to_string());
    }
    all
}

fn predicate(text: &str) -> Option<Arg> {
    let (not, name) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let number = |digits: &str| if digits == "T" { Some(7) } else { digits.parse().ok().filter(|n| *n < 7) };
    match (name.strip_prefix("UP"), name.strip_prefix('P')) {
        (Some(digits), _) => number(digits).map(|n| Arg::upred(n, not)),
        (_, Some(digits)) => number(digits).map(|n| Arg::pred(n, not)),
        _ => None,
    }
}

fn register(name: &str) -> Option<Arg> {
    match (name, name.strip_prefix("UR"), name.strip_prefix('R')) {
        ("RZ", ..) => Some(Arg::reg(255)),
        ("URZ", ..) => Some(Arg::ureg(255)),
        (_, Some(n), _) => n.parse().ok().map(Arg::ureg),
        (_, _, Some(n)) => n.parse().ok().map(Arg::reg),
        _ => None,
    }
}

fn integer(text: &str) -> Option<u64> {
    let (neg, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if neg { value.wrapping_neg() } else { value })
}

/// The number of a scoreboard.
fn scoreboard(text: &str) -> Option<u64> {
    text.strip_prefix("SB")?.parse().ok()
}

struct Reader<'a> {
    lifted: Lifted,
    next: u64,
    labels: &'a HashMap<String, u64>,
}

impl Reader<'_> {
    /// Assigns the printed operands to the opcode's roles, in order; optional roles are skipped if
    /// classes differ.
    fn assign(&mut self, operands: &[String]) -> Result<(), String> {
        let roles = self.lifted.inst.op.info().roles;
        let mut at = 0;
        let text = self.lifted.inst.op.info().text;
        if matches!(text, "P2R" | "R2P" | "UP2UR") {
            return self.predicate_move(operands);
        }
        if matches!(text, "HFMA2" | "HFMA2.MMA" | "HADD2" | "HMUL2") {
            return self.halves(operands);
        }
        // `DEPBAR {5,4,3,2,1,0}`: the scoreboards that it waits for.
        if text == "DEPBAR"
            && let Some(at) = operands.iter().position(|operand| operand.starts_with('{'))
        {
            let boards = operands[at..].iter().filter_map(|board| board.trim_matches(['{', '}']).parse::<u32>().ok());
            self.lifted.inst.set(Role::Mask, Arg::imm(boards.fold(0, |mask, board| mask | 1 << board)));
            return self.assign(&operands[..at]);
        }
        if matches!(text, "UBLKCP" | "UBLKRED" | "UBLKPF" | "UTMALDG" | "UTMASTG" | "UTMAREDG" | "UTMAPF") {
            return self.bulk(operands);
        }
        if text == "UTCMMA" {
            return self.tensor_product(operands);
        }
        if matches!(text, "TEX" | "TLD" | "TLD4" | "TXD" | "TXQ" | "SULD" | "SUST" | "SURED") {
            return self.texture(operands);
        }
        if matches!(text, "UTCCP" | "UTCSHIFT") {
            return self.tensor_copy(operands);
        }
        if text == "UTCBAR" {
            let first = operands.first().map_or("", |operand| operand.trim_matches(['[', ']']));
            self.lifted.inst.set(Role::A, register(first).ok_or("a barrier")?);
            if let Some(blocks) = operands.get(2) {
                self.lifted.inst.set(Role::C, register(blocks).ok_or("blocks")?);
            }
            return Ok(());
        }
        // A predicate of the lanes comes before the uniform one.
        if let ("BRA", [lanes, uniform, target]) = (text, operands)
            && uniform.trim_start_matches('!').starts_with("UP")
        {
            self.lifted.inst.set(Role::Pq, predicate(lanes).ok_or("a predicate")?);
            self.lifted.inst.set(Role::Pp, predicate(uniform).ok_or("a predicate")?);
            return self.assign(std::slice::from_ref(target));
        }
        // The second of its registers is the one after the first.
        let operands = if text == "UGETNEXTWORKID" { &operands[..1] } else { operands };
        if let ("USYNCS.ARRIVE", [_, _, blocks]) = (text, operands) {
            self.lifted.inst.set(Role::C, register(blocks).ok_or("blocks")?);
            return self.assign(&operands[..1]);
        }
        // Only LDTM.STAT has a register for the extreme, before that of the words.
        if text == "LDTM" && operands.len() < 3 {
            at = 1;
        }
        // What it fills memory with is always zero.
        let shown = |operand: &&String| text != "UMEMSETS" || *operand != "URZ";
        for (i, operand) in operands.iter().filter(shown).enumerate() {
            if operand.contains('[') && !is_bank(operand) {
                let second = operands[i + 1..].iter().any(|o| o.contains('[') && !is_bank(o));
                let roles_of = if second { [Role::S, Role::Soff] } else { [Role::A, Role::Off] };
                self.address(operand, roles_of)?;
                at = roles.iter().position(|r| r.role == Role::Off).map_or(at, |p| p + 1);
                continue;
            }
            if STATES.contains(&operand.as_str()) {
                self.lifted.words.push("warp_state", operand);
                continue;
            }
            if text == "FSWZADD" && operand.len() == 8 && operand.bytes().all(|letter| b"ZPN".contains(&letter)) {
                self.lifted.words.push("quad_signs", operand);
                continue;
            }
            if operand.starts_with("Rpc.") {
                self.lifted.words.push("", operand);
                // A register behind it is what it takes.
                at = if i == 0 { roles.iter().position(|r| r.role == Role::A).unwrap_or(at) } else { at };
                continue;
            }
            let more = operands[i + 1..].iter().any(|o| integer(o).is_some());
            let last_number = integer(operand).is_some() && !more;
            let found = (at..roles.len()).find(|p| {
                let awaited = roles[p + 1..].iter().any(|r| r.class == Class::Imm && r.absent == Absent::Required);
                self.fits(&roles[*p], operand) && !(last_number && awaited && roles[*p].class != Class::Imm)
            });
            let Some(found) = found else { return Err(format!("no role for `{operand}`")) };
            // A half selector of packed f16 belongs to its operand.
            let picks = matches!(text, "HSETP2" | "HSET2" | "HMNMX2");
            let letter = match roles[found].role {
                Role::A if picks => "a",
                Role::B if picks => "b",
                _ => "",
            };
            let plain = match text {
                "FADD2" | "FMUL2" | "FFMA2" => self.without_pair(operand, roles[found].role),
                _ if letter.is_empty() => operand,
                _ => self.without_pick(operand, letter),
            };
            let arg = self.operand(plain, &roles[found])?;
            self.lifted.inst.set(roles[found].role, arg);
            at = found + 1;
        }
        Ok(())
    }

    fn fits(&self, role: &RoleInfo, operand: &str) -> bool {
        let is_pred = predicate(operand).is_some();
        let bank = is_bank(operand) && matches!(self.lifted.inst.op.info().text, "LDC" | "ULDC" | "LDCU");
        match role.class {
            _ if bank => role.role == Role::C,
            Class::Pred => is_pred,
            Class::Reg | Class::Uniform => !is_pred && !operand.starts_with("`(") && !is_barrier(operand),
            Class::Barrier => is_barrier(operand),
            Class::Label => operand.starts_with("`(") || operand.starts_with("-0x"),
            Class::Special => operand.starts_with('S'),
            Class::Imm => integer(operand).is_some() || is_bank(operand) || scoreboard(operand).is_some(),
        }
    }

    fn operand(&mut self, text: &str, role: &RoleInfo) -> Result<Arg, String> {
        if let Some(arg) = predicate(text) {
            return Ok(arg);
        }
        if role.class == Class::Special {
            self.lifted.special = text.to_string();
            return Ok(Arg::special(0));
        }
        if let Some(name) = text.strip_prefix("`(").and_then(|t| t.strip_suffix(')')) {
            let at = self.labels.get(name).ok_or_else(|| format!("no label {name}"))?;
            return Ok(Arg::label(at.wrapping_sub(self.next) as i64));
        }
        if is_barrier(text) {
            return Ok(Arg::bar(text[1..].parse().map_err(|_| "a barrier")?));
        }
        self.value(text)
    }

    fn value(&mut self, text: &str) -> Result<Arg, String> {
        if let Some(number) = scoreboard(text) {
            return Ok(Arg::imm(number));
        }
        if let Some(bits) = integer(text).filter(|_| !self.is_float()) {
            return Ok(Arg::imm(bits));
        }
        if self.is_float()
            && let Some(bits) = self.float(text)
        {
            return Ok(Arg::imm(bits));
        }
        let (neg, text) = text.strip_prefix('-').map_or((false, text), |t| (true, t));
        let (not, text) = text.strip_prefix('~').map_or((false, text), |t| (true, t));
        let (abs, text) = text.strip_prefix('|').and_then(|t| t.split_once('|')).map_or((false, text), |(t, rest)| {
            self.lifted.words.push("", rest.trim_start_matches('.'));
            (true, t)
        });
        if let Some((bank, offset)) = text.strip_prefix("c[").and_then(|t| t.strip_suffix(']')?.split_once("][")) {
            let bank = integer(bank).ok_or("a bank")?;
            let mut offset = offset;
            if let Some((register_text, rest)) = offset.split_once('+').filter(|(r, _)| register(r).is_some()) {
                self.lifted.inst.set(Role::A, register(register_text).unwrap_or_default());
                offset = rest;
            } else if let Some(arg) = register(offset) {
                self.lifted.inst.set(Role::A, arg);
                offset = "0";
            }
            let offset = integer(offset).ok_or_else(|| format!("an offset {offset}"))?;
            return Ok(Arg { neg, not, abs, ..Arg::constant(bank as u8, offset as i32) });
        }
        let mut parts = text.split('.');
        let name = parts.next().unwrap_or_default();
        let arg = register(name).ok_or_else(|| format!("an operand {text}"))?;
        for part in parts {
            self.lifted.words.push("", part);
        }
        Ok(Arg { neg, not, abs, ..arg })
    }

    fn is_float(&self) -> bool {
        let text = self.lifted.inst.op.info().text;
        let text = text.strip_prefix('U').unwrap_or(text);
        let other = text.starts_with("FLO") || text == "DEPBAR";
        matches!(text.as_bytes()[0], b'F' | b'D') && !other || text == "MUFU"
    }

    /// A float immediate: the bits of an f32, or all bits of an f64.
    fn float(&self, text: &str) -> Option<u64> {
        let op = self.lifted.inst.op.info().text;
        let high = op == "MUFU" && ["RCP64H", "RSQ64H"].iter().any(|function| self.lifted.words.has(function));
        let converted = op == "F2I" && self.lifted.words.has("F64");
        let double = op.starts_with('D') || high || converted;
        let value: f64 = match text {
            "+INF" => f64::INFINITY,
            "-INF" => f64::NEG_INFINITY,
            "+QNAN" | "+SNAN" | "QNAN" => return Some(if double { 0x7ff8 << 48 } else { 0x7fff_ffff }),
            "-QNAN" | "-SNAN" => return Some(if double { 0xfff8 << 48 } else { 0xffff_ffff }),
            _ => text.parse().ok()?,
        };
        let single: Option<f32> = text.trim_start_matches('+').parse().ok();
        Some(if double { value.to_bits() } else { single.unwrap_or(value as f32).to_bits().into() })
    }

    /// Parses an address into the roles of its register and its offset. A uniform register takes
    /// the register's place if the opcode has no uniform part.
    fn address(&mut self, operand: &str, [base, off]: [Role; 2]) -> Result<(), String> {
        let has_uniform = self.lifted.inst.op.info().roles.iter().any(|r| r.role == Role::Ub);
        let mut rest = operand;
        if let Some(tail) = rest.strip_prefix("desc[") {
            let (_, tail) = tail.split_once(']').ok_or("a descriptor")?;
            rest = tail;
        }
        let rest = rest.strip_prefix("tmem").unwrap_or(rest);
        let inner = rest.strip_prefix('[').and_then(|t| t.strip_suffix(']')).ok_or("an address")?;
        let mut offset = 0u64;
        for term in inner.split('+') {
            let (name, words) = term.split_once('.').unwrap_or((term, ""));
            match (register(name), integer(term)) {
                (Some(arg), _) if arg.kind == ArgKind::UReg => {
                    self.lifted.inst.set(if has_uniform { Role::Ub } else { base }, arg);
                }
                (Some(arg), _) => {
                    if words != "64" {
                        self.lifted.words.push("", words);
                    }
                    self.lifted.inst.set(base, arg);
                }
                (_, Some(number)) => offset = offset.wrapping_add(number),
                _ => return Err(format!("an address term {term}")),
            }
        }
        self.lifted.inst.set(off, Arg::imm(offset));
        Ok(())
    }

    /// `[UR8], [UR6], UR4, desc[UR2]`: where to, where from, how much, and a cache policy.
    fn bulk(&mut self, operands: &[String]) -> Result<(), String> {
        let mut places = [Role::A, Role::B].into_iter();
        for operand in operands {
            let inner = operand.rsplit('[').next().unwrap_or_default().trim_end_matches(']');
            let role = match operand.split_once('[') {
                Some(("desc", _)) => Role::E,
                Some(_) => places.next().ok_or("a third address")?,
                None => Role::C,
            };
            let arg = register(inner).ok_or_else(|| format!("an operand {operand}"))?;
            self.lifted.inst.set(role, arg);
        }
        Ok(())
    }

    /// `gdesc[UR8], gdesc[UR10], tmem[UR6], tmem[UR4], idesc[UR5], UR12, UP0, 0x3`: the
    /// factors, sums, metadata, the descriptor behind them, which lanes keep their sums, whether
    /// they are added to.
    fn tensor_product(&mut self, operands: &[String]) -> Result<(), String> {
        let kind = self.lifted.words.kind("utc_type").map(str::to_string);
        self.modify(Mod::UtcType, kind.as_deref().unwrap_or(""));
        let mut roles = [Role::A, Role::B, Role::C, Role::E].into_iter();
        for operand in operands {
            if let Some(arg) = predicate(operand) {
                self.lifted.inst.set(Role::Pp, arg);
            } else if let Some(number) = integer(operand) {
                self.lifted.inst.set(Role::Mask, Arg::imm(number));
            } else if let Some((file, rest)) = operand.split_once('[') {
                let (name, _) = rest.split_once(']').ok_or("an operand")?;
                let arg = register(name).ok_or_else(|| format!("an operand {operand}"))?;
                if file == "idesc" {
                    continue;
                }
                // The addresses of scales are the fifth.
                let role = roles.next().unwrap_or(Role::F);
                if role == Role::F {
                    self.modify(Mod::UtcScaled, "SCALED");
                }
                if role == Role::A && file == "tmem" {
                    self.modify(Mod::UtcA, "TMEM");
                }
                self.lifted.inst.set(role, arg);
            } else {
                let arg = register(operand).ok_or_else(|| format!("an operand {operand}"))?;
                self.lifted.inst.set(Role::F, arg);
            }
        }
        Ok(())
    }

    /// `tmem[UR6+0x8], gdesc[UR8]`: where to, and from where; one alone is what is shifted.
    fn tensor_copy(&mut self, operands: &[String]) -> Result<(), String> {
        for operand in operands {
            let (file, rest) = operand.split_once('[').ok_or("an operand")?;
            let inner = rest.trim_end_matches(']');
            let (name, offset) = inner.split_once('+').unwrap_or((inner, "0x0"));
            let arg = register(name).ok_or_else(|| format!("an operand {operand}"))?;
            self.lifted.inst.set(if file == "tmem" { Role::A } else { Role::B }, arg);
            if file == "tmem" {
                self.lifted.inst.set(Role::Off, Arg::imm(integer(offset).ok_or("an offset")?));
            }
        }
        Ok(())
    }

    /// `R4, R2, R8, R10, UR4, 0x0, 2D, 0x1`, `[R8], R4, 0x0, 0x5a` and similar: results,
    /// coordinates or an address, what else there is, the handle, the shape, the mask.
    fn texture(&mut self, operands: &[String]) -> Result<(), String> {
        let surface = self.lifted.inst.op.info().text.starts_with("SU");
        let loads = self.lifted.inst.op == Op::SULD;
        let roles: &[Role] = match surface {
            true if loads => &[Role::D, Role::C],
            true => &[Role::B, Role::C],
            false => &[Role::D2, Role::D, Role::A, Role::B],
        };
        let (mut roles, mut shaped, mut numbers) = (roles.iter(), false, Vec::new());
        for operand in operands {
            let plain = operand.trim_matches(['[', ']']);
            if let Some(arg) = predicate(operand) {
                self.lifted.inst.set(Role::Pu, arg);
            } else if let Some(number) = integer(operand) {
                if shaped {
                    self.lifted.inst.set(Role::Mask, Arg::imm(number));
                } else {
                    numbers.push(number);
                }
            } else if let Some(arg) = register(plain) {
                let role = match (plain == operand, arg.kind) {
                    (false, _) => Role::A,
                    (_, ArgKind::UReg) => Role::Ub,
                    _ => *roles.next().ok_or("one register too many")?,
                };
                self.lifted.inst.set(role, arg);
            } else {
                self.lifted.words.push("texdim", operand);
                shaped = self.lifted.inst.op != Op::TXQ;
            }
        }
        // TXQ has the handle behind what is asked, and the mask last.
        if self.lifted.inst.op == Op::TXQ {
            self.lifted.inst.set(Role::Mask, Arg::imm(numbers.pop().ok_or("no mask")?));
        }
        let places: &[Role] = if numbers.len() == 2 { &[Role::K, Role::O] } else { &[Role::O] };
        for (role, number) in places.iter().zip(numbers) {
            self.lifted.inst.set(*role, Arg::imm(number));
        }
        Ok(())
    }

    fn modify(&mut self, kind: Mod, text: &str) {
        let found = (0..u8::MAX).take_while(|value| kind.text(*value) != "?").find(|value| kind.text(*value) == text);
        self.lifted.inst.mods.set(kind, found.unwrap_or(0));
    }

    /// `P2R R14, PR, RZ, 0x1` and similar: the predicate file is printed but is not an operand.
    fn predicate_move(&mut self, operands: &[String]) -> Result<(), String> {
        let given: Vec<&String> = operands.iter().filter(|o| *o != "PR" && *o != "UPR").collect();
        let roles: &[Role] = if given.len() == 3 { &[Role::D, Role::A, Role::B] } else { &[Role::A, Role::B] };
        for (operand, role) in given.into_iter().zip(roles) {
            let arg = self.value(operand)?;
            self.lifted.inst.set(*role, arg);
        }
        Ok(())
    }

    /// A packed f16 operand without its half selector, which is recorded under the operand's
    /// letter.
    fn without_pick<'t>(&mut self, operand: &'t str, letter: &str) -> &'t str {
        let Some((text, pick)) = operand.split_once(".H") else { return operand };
        self.lifted.words.push(letter, &format!("H{}", pick.trim_end_matches('|')));
        text
    }

    /// Two f32: a word behind the operand says that one number stands for both, or their order.
    fn without_pair<'t>(&mut self, operand: &'t str, role: Role) -> &'t str {
        let kind = match role {
            Role::A => "pair_a",
            Role::B => "pair_b",
            _ => "pair_c",
        };
        for (end, word) in [(".F32", "F32"), (".F32x2.LO_HI", "LO_HI")] {
            if let Some(text) = operand.strip_suffix(end) {
                self.lifted.words.push(kind, word);
                return text;
            }
        }
        operand
    }

    /// Packed f16: an immediate is printed as two numbers, and a half selector belongs to its
    /// operand.
    fn halves(&mut self, operands: &[String]) -> Result<(), String> {
        let mut operands = operands.to_vec();
        let number = |text: &String| half_number(text);
        if let Some(i) =
            (1..operands.len()).find(|i| number(&operands[*i]).is_some() && number(&operands[*i - 1]).is_some())
        {
            use sassafras::sim::ops::format::{BF16, F16, F64, Round};
            let format = if self.lifted.words.has("BF16_V2") || self.lifted.words.has("BF16") { BF16 } else { F16 };
            let half = |text: &str| -> Result<u64, String> {
                let wide = half_number(text).ok_or_else(|| format!("{text} is no number"))?;
                Ok(F64.convert(wide.to_bits(), format, Round::Nearest))
            };
            let bits = half(&operands[i - 1])? << 16 | half(&operands[i])?;
            operands.splice(i - 1..=i, [format!("{bits:#x}")]);
        }
        for (operand, (role, letter)) in
            operands.iter().zip([(Role::D, ""), (Role::A, "a"), (Role::B, "b"), (Role::C, "c")])
        {
            let text = self.without_pick(operand, letter);
            let text = match text.strip_suffix(".F32") {
                Some(text) => {
                    self.lifted.words.push(letter, "F32");
                    text
                }
                None => text,
            };
            let closing = if text.matches('|').count() == 1 { "|" } else { "" };
            let arg = match integer(text) {
                Some(bits) => Arg::imm(bits),
                None => self.value(&format!("{text}{closing}"))?,
            };
            self.lifted.inst.set(role, arg);
        }
        Ok(())
    }
}

/// The kind of a word of a read of a texture: a component of four texels comes before the word for
/// a handle in a register.
fn texture_kind(parts: &[&str], i: usize) -> &'static str {
    let component = |part: &&str| matches!(*part, "R" | "G" | "B" | "A");
    let first = parts.iter().skip(1).position(component).map(|at| at + 1);
    match parts[i] {
        _ if parts[0] == "TLD4" && first == Some(i) => "gather",
        "B" => "bindless_b",
        _ => "",
    }
}

/// Whether a word is the shape of a surface.
fn is_shape(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('D')
}

fn is_barrier(text: &str) -> bool {
    text.strip_prefix('B').is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

fn is_bank(text: &str) -> bool {
    text.trim_start_matches(['-', '|', '~']).starts_with("c[")
}

/// An f16 immediate as nvdisasm prints it: a decimal number, a signed infinity, or a quiet NaN.
/// `None` for anything else.
fn half_number(text: &str) -> Option<f64> {
    match text {
        "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "+QNAN" => Some(f64::NAN),
        "-QNAN" => Some(-f64::NAN),
        _ => text.parse().ok(),
    }
}
