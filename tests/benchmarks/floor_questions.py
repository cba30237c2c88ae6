"""Questions that no corpus answers: made-up words and everyday errands, in three languages, the same at every run."""

import random

_ONSETS = {
    "en": "b bl br d dr f fl g gl k kr l m n p pl s sk t tr v w z",
    "ru": "б бл бр в г гл д др ж з к кр л м н п пр с т х ш",
}
_CORES = {"en": "a e i o u oo ai", "ru": "а е и о у ы ю"}
_ENDS = {"en": "b d f g k l m n p rt sh x z mp nk", "ru": "б в г д ж з к л м н п р с т ш"}
_KEYS = {"en": "qwertyuiopasdfghjklzxcvbnm", "ru": "йцукенгшщзхъфывапролджэячсмитьбю"}
_PATTERNS = {
    "en": "where can I buy {}|how to repair {}|my {} is broken|best {} for a child|how much does {} cost|"
    "how do I clean {}|{} delivery near me|is {} good for my dog|recipe with {}|how to draw {} step by step",
    "ru": "где купить {}|как починить {}|у меня сломалось: {}|какой выбрать: {} для ребёнка|сколько стоит {}|"
    "как почистить {}|доставка на дом: {}|можно ли собаке {}|рецепт: {}|как нарисовать {} поэтапно",
    "zh": "哪里可以买到{}|怎么修理{}|我的{}坏了|适合孩子的{}推荐|{}多少钱|"
    "怎么清洗{}|附近{}外卖|狗狗可以吃{}吗|{}的做法|怎么一步一步画{}",
}
_THINGS = {
    "en": "a washing machine|pancakes|a bicycle tyre|strawberry jam|a leather sofa|garlic bread|an umbrella|hair dryer|"
    "a birthday cake|running shoes|a frying pan|chocolate cookies",
    "ru": "стиральная машина|блины|велосипедная шина|клубничное варенье|кожаный диван|чесночный хлеб|зонт|фен|"
    "торт на день рождения|кроссовки|сковорода|шоколадное печенье",
    "zh": "洗衣机|煎饼|自行车轮胎|草莓酱|皮沙发|蒜蓉面包|雨伞|吹风机|生日蛋糕|跑鞋|平底锅|巧克力饼干",
}


def everyday() -> list[str]:
    """Errands of daily life: real words, natural questions, about nothing that the sets speak of."""
    return [
        pattern.format(thing)
        for language, patterns in _PATTERNS.items()
        for pattern in patterns.split("|")
        for thing in _THINGS[language].split("|")
    ]


def made_up(count: int, seed: int = 7) -> list[str]:
    """`count` strings of one to six words that mean nothing: pseudo-words, keyboard mash, random characters."""
    chance = random.Random(seed)
    makers = [_pseudo_word, _mash, _code]
    texts = []
    for number in range(count):
        language = ("en", "ru", "zh")[number % 3]
        words = chance.randint(1, 6)
        if language == "zh":
            texts.append("".join(chr(chance.randint(0x4E00, 0x9FA5)) for _ in range(words * 2)))
        else:
            maker = makers[number // 3 % 3]
            texts.append(" ".join(maker(language, chance) for _ in range(words)))
    return texts


def made_up_asked(count: int, seed: int = 8) -> list[str]:
    """Made-up words in the frame of a real question."""
    chance = random.Random(seed)
    frames = {
        "en": "what is {}?|rules for {} of {}|how long is a {} kept",
        "ru": "что такое {}?|порядок {} для {}|срок хранения {}",
    }
    return [
        _fill(chance.choice(frames[language].split("|")), language, chance)
        for language, _ in zip(["en", "ru"] * count, range(count), strict=False)
    ]


def _fill(frame: str, language: str, chance: random.Random) -> str:
    return frame.format(*(_pseudo_word(language, chance) for _ in range(2)))


def _pseudo_word(language: str, chance: random.Random) -> str:
    return "".join(
        chance.choice(_ONSETS[language].split()) + chance.choice(_CORES[language].split())
        for _ in range(chance.randint(2, 3))
    ) + chance.choice(_ENDS[language].split())


def _mash(language: str, chance: random.Random) -> str:
    return "".join(chance.choice(_KEYS[language]) for _ in range(chance.randint(4, 12)))


def _code(language: str, chance: random.Random) -> str:
    return _pseudo_word(language, chance) + chance.choice(["-", "", "/"]) + str(chance.randint(10_000, 999_999))
