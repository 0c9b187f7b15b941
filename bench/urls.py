"""Holdpoint's routes, and the reference for intake: a bare DRF view that inserts one row."""

from django.db import connection
from django.urls import path
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.urls import *  # noqa: F403
from config.urls import urlpatterns as holdpoint


class BareIn(serializers.Serializer):  # type: ignore[type-arg]
    patient_context_ref = serializers.CharField()
    action = serializers.DictField()
    metadata = serializers.DictField()


class BareApi(APIView):
    authentication_classes: list[type] = []
    permission_classes = [AllowAny]

    def post(self, request: Request) -> Response:
        serializer = BareIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO bench_bare (context, action) VALUES (%s, %s) RETURNING id",
                [serializer.validated_data["patient_context_ref"], str(serializer.validated_data["action"])],
            )
            (row_id,) = cursor.fetchone()
        return Response({"id": row_id}, status=201)


urlpatterns = [*holdpoint, path("bench/bare", BareApi.as_view())]
