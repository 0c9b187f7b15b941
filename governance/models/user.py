"""People. What they may do is object permission on organizations and contracts, never a flag on the user."""

from django.contrib.auth.models import AbstractUser
from django.db import models

from reasoncodes.ids import uuid7


class User(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    time_zone = models.CharField(max_length=64, default="UTC", help_text="For the deadlines shown to this person.")

    class Meta:
        ordering = ["username"]
        verbose_name = "person"
        verbose_name_plural = "people"


class PersonReference(models.Model):
    """The only link from a person to the commitment that stands for them in the ledger.

    Destroying this row (salt and all) takes the meaning away; the entries and their proofs stay as they are.
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="reference", primary_key=True)
    salt = models.BinaryField(max_length=32)
    commitment = models.CharField(max_length=64, unique=True)

    class Meta:
        verbose_name = "person reference"

    def __str__(self) -> str:
        return self.commitment
