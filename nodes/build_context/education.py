"""Progress of courses, only where it is relevant (RF-15, A-5); Medium (RF-60)."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.nodes.build_context.topic.subjects import concept_topic, is_related, naming_words
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung
from recuerdo.stores.sources.rows import CourseProgress

COMPLETE = 100
MOST_COURSES = 10
"""Courses told one by one, the active ones first."""

_READ = 2000


def relevant_courses(data: Gathered) -> list[CourseProgress]:
    """All, where the message names courses, lessons or learning; else the active ones about what it names.

    Active ones first, the newest progress first.
    """
    asked = "education" in data.asked
    found = [one for one in data.education if asked or (is_active(one) and _is_about(data, one))]
    newest = sorted(found, key=lambda one: one.updated_at, reverse=True)
    return sorted(newest, key=lambda one: not is_active(one))


def is_active(course: CourseProgress) -> bool:
    """Whether there is something left to learn."""
    return course.percent < COMPLETE


def education_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """One line a course, then the first one only."""
    lines = [_line(data, course) for course in relevant_courses(data)]
    if not lines:
        return []
    rungs = [
        text_rung("full", fenced("education", data.phrasing.capped(lines, MOST_COURSES)), count),
        text_rung("one line", fenced("education", lines[:1]), count),
        REMOVED,
    ]
    return [make_block("education", "medium", "turn", rungs, source="education", order=5)]


def _is_about(data: Gathered, course: CourseProgress) -> bool:
    """Whether the message names the course's topic, in either language."""
    message = data.text[:_READ]
    said, taught = (concept_topic(text, data.language) for text in (message, course.topic))
    if said and taught and is_related(said, taught):
        return True
    words = set(naming_words(course.topic))
    return bool(words) and words <= set(naming_words(message))


def _line(data: Gathered, course: CourseProgress) -> str:
    phrasing = data.phrasing
    line = phrasing.say(
        "course",
        course=as_data(course.course),
        topic=as_data(course.topic),
        percent=phrasing.share(course.percent),
    )
    if not course.next_lesson:
        return line
    return f"{line}, {phrasing.say('course_next_lesson', lesson=as_data(course.next_lesson))}"
