"""What Jinja2, set up as transformers sets it up, makes of chat templates and chats. Run by makeFamilies.ts.

Input, one JSON value: {templates: {name: source}, chats: file of {name: chat}, now: [year, month, …]}.
Output, one JSON object a line: {template, chat, text or error, whose?}; `whose` tells of each code point the index of
the message that it came from, or null where nobody knows.
"""

import functools
import json
import re
import sys
import warnings
from datetime import datetime

from fuzzTemplates import environment

TOKENS = ["bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"]


def context_of(chat):
    """The variables that transformers gives a template."""
    values = {"add_generation_prompt": chat.get("add_generation_prompt", False)}
    values.update({name: chat[name] for name in TOKENS if chat.get(name) is not None})
    values.update(chat.get("arguments") or {})
    return {**values, "messages": chat["messages"], "tools": chat.get("tools"), "documents": chat.get("documents")}


class Swap:
    """Puts a character of its own in the place of every ASCII letter and digit that a message says."""

    def __init__(self):
        self.marks = {}

    def text(self, text, index):
        parts = re.split(r"(</?think>)", text)
        return "".join(part if "think>" in part else self.plain(part, index) for part in parts)

    def plain(self, text, index):
        swapped = []
        for char in text:
            if char.isascii() and char.isalnum():
                own = chr(0xF0000 + len(self.marks))
                self.marks[own] = (char, index)
                char = own
            swapped.append(char)
        return "".join(swapped)

    def value(self, value, index):
        if isinstance(value, str):
            return self.text(value, index)
        if isinstance(value, list):
            return [self.value(item, index) for item in value]
        if isinstance(value, dict):
            return {key: item if key == "type" else self.value(item, index) for key, item in value.items()}
        return value

    def messages(self, messages):
        spoken = ("content", "reasoning_content", "reasoning", "thinking")
        return [
            {key: self.value(value, index) if key in spoken else value for key, value in message.items()}
            for index, message in enumerate(messages)
        ]


def whose(template, chat, text):
    """By code point the index of the message; None where marks change what is printed."""
    swap = Swap()
    try:
        marked = template.render(**context_of({**chat, "messages": swap.messages(chat["messages"])}))
    except Exception:
        return None
    plain = "".join(swap.marks[char][0] if char in swap.marks else char for char in marked)
    if plain != text:
        return None
    return [swap.marks[char][1] if char in swap.marks else None for char in marked]


def main():
    warnings.simplefilter("ignore")
    given = json.load(sys.stdin)
    with open(given["chats"], encoding="utf-8") as file:
        chats = json.load(file)
    env = environment()
    now = datetime(*given["now"])
    env.globals["strftime_now"] = lambda format: now.strftime(format)
    compiled = functools.cache(env.from_string)
    for name, source in given["templates"].items():
        for chat_name, chat in chats.items():
            case = {"template": name, "chat": chat_name}
            try:
                template = compiled(source)
                if not chat["messages"]:
                    raise ValueError("transformers refuses an empty conversation")
                case["text"] = template.render(**context_of(chat))
                case["whose"] = whose(template, chat, case["text"])
            except Exception as error:  # every failure of Python is an expected failure here
                case["error"] = f"{type(error).__name__}: {error}"
            print(json.dumps(case))


main()
